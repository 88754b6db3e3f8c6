"""The gradient ops of core ATen against torch, called as they are."""

from __future__ import annotations

import pytest
import torch

from tests.importers.torch.agreement import agree, normal

A = torch.ops.aten
X, G = normal(2, 4, 6, 5), normal(2, 4, 6, 5, seed=1)
POOLED, AT = A.max_pool2d_with_indices(X, [3, 3], [2, 2], [1, 1])
LAYER = torch.ops.aten.native_layer_norm(X, [6, 5], None, None, 1e-5)
GROUP = torch.ops.aten.native_group_norm(X, None, None, 2, 4, 30, 2, 1e-5)
ALL = [True, True, True]
CASES = {
    "embedding": (lambda g, i: A.embedding_dense_backward(g, i, 5, 2, False),
                  normal(2, 3, 4), torch.tensor([[0, 2, 1], [4, 1, 1]])),
    "max_pool": (lambda g, x, i: A.max_pool2d_with_indices_backward(
        g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, i), normal(*POOLED.shape), X, AT),
    "layer_norm": (lambda g, x, m, r, w: A.native_layer_norm_backward(
        g, x, [6, 5], m, r, w, w, ALL), G, X, *LAYER[1:], normal(6, 5)),
    "group_norm": (lambda g, x, m, r, w: A.native_group_norm_backward(
        g, x, m, r, w, 2, 4, 30, 2, ALL), G, X, *GROUP[1:], normal(4)),
    "conv": (lambda g, x, w: A.convolution_backward(
        g, x, w, [6], [2, 1], [1, 0], [1, 2], False, [0, 0], 2, ALL),
        normal(2, 6, 3, 3), normal(2, 4, 5, 7), normal(6, 2, 3, 3)),
    "conv transposed": (lambda g, x, w: A.convolution_backward(
        g, x, w, [6], [2, 1], [1, 0], [1, 1], True, [1, 0], 2, ALL),
        normal(2, 6, 6, 5), normal(2, 4, 3, 3), normal(4, 3, 3, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_backward(name):
    fn, *args = CASES[name]
    agree(fn, *args)
