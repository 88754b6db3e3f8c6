"""What torch's own samples turned up as wrong or missing, one row each, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.importers.torch.agreement import agree, normal

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about its own
X = normal(4, 5)
WHOLE = torch.tensor([[6, -4, 0], [9, 12, 7]])
NAN = torch.tensor([[1.0, float("nan"), 3, 2], [5, 4, 3, 1]]).double()
ROWS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add_bool_alpha": (lambda a, b: torch.add(a, b, alpha=False), (X > 0, X > 1)),
    "sign_bool": (torch.sign, (X > 0,)),
    "gather_nothing": (lambda x: x.gather(0, torch.empty(0, dtype=torch.int64)), (X,)),
    "var_of_nothing": (lambda x: x.var(), (normal(0),)),
    "var_of_one": (lambda x: x.var(), (normal(1),)),
    "prod_bool": (lambda x: (x > -2).prod(dtype=torch.bool), (X,)),
    "sum_to_bool": (lambda x: x.sum(0, dtype=torch.bool), (WHOLE,)),
    "scatter_bool": (lambda x, i: (x > 0).scatter(1, i, x[:, :2] > 1, reduce="add"),
                     (X, torch.ones(4, 2, dtype=torch.int64))),
    "nonzero_of_nothing": (lambda x: x.nonzero(), (normal(0, 3),)),
    "avg_pool_int": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
                     (normal(1, 2, 6, 6, dtype=torch.int64),)),
    "avg_pool_int_unpadded": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
                              (normal(1, 2, 6, 6, dtype=torch.int64),)),
    "adaptive_max": (lambda x: F.adaptive_max_pool2d(x, (2, 3), return_indices=True),
                     (normal(2, 3, 5, 7),)),
    "searchsorted": (lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True)),
                     (torch.tensor([[1, 3, 5], [2, 2, 9]]), torch.tensor([[3, 6], [2, 1]]))),
    "bucketize": (lambda v: torch.bucketize(v, torch.tensor([-1.0, 0, 1]).double()), (X,)),
    "histc": (lambda x: (torch.histc(x, 5), torch.histc(x, 4, -1, 1)), (X,)),
    "mode": (lambda x: torch.mode(x.round())[0], (X,)),
    "median_nan": (lambda x: (torch.median(x, 1), x.median()), (NAN,)),
    "nanmedian": (lambda x: (torch.nanmedian(x, 1), x.nanmedian()), (NAN,)),
    "gcd": (lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)), (WHOLE, WHOLE.flip(1))),
    "signbit": (torch.signbit, (torch.tensor([-0.0, 0.0, -2, 3]),)),
    "angle": (torch.angle, (NAN - 2,)),
    "ldexp": (torch.ldexp, (X, torch.arange(5))),
    "dist": (lambda a: (torch.dist(a, a * 2, 3), torch.dist(a, -a, 0)), (X,)),
    "triangles": (lambda x: (torch.tril_indices(3, 4, 1), torch.triu_indices(4, 3, -1), x), (X,)),
    "index_reduce": (lambda x, s: x.index_reduce(0, torch.tensor([0, 2, 0]), s, "mean",
                                                 include_self=False), (X, normal(3, 5))),
    "put": (lambda x: x.put(torch.tensor([1, -2]), torch.tensor([7.0, 8]).double(), True), (X,)),
    "as_strided_scatter": (lambda x: torch.as_strided_scatter(x, torch.ones(2, 2).double(),
                                                              (2, 2), (1, 3), 1), (X,)),
    "repeat_by_tensor": (lambda x: torch.repeat_interleave(x, torch.tensor([1, 0, 2, 3]), 0,
                                                           output_size=6), (X,)),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4)), (X,)),
    "det_of_nothing": (lambda x: (torch.linalg.det(x), torch.linalg.slogdet(x)[1]),
                       (normal(2, 0, 0),)),
    "qr_complete": (lambda x: torch.linalg.qr(x, "complete"), (normal(5, 3),)),
    "solve_from_the_right": (lambda a, b: torch.linalg.solve(a, b, left=False),
                             (normal(4, 4), X.T.contiguous())),
    "lu_solve_adjoint": (lambda a, b: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(a), b, left=False, adjoint=True), (normal(4, 4), X.T.contiguous())),
    "running_extremes": (lambda x: (x.cummax(1), x.cummin(0), (x > 0).cummax(1)), (NAN,)),
    "unfold_of_one": (lambda x: x.sum().unfold(0, 1, 1), (X,)),
    "index_add_bool": (lambda x: (x > 0).index_add(0, torch.tensor([0, 2]), x[:2] > 0), (X,)),
    "index_put_bool": (lambda x: (x > 0).index_put((torch.tensor([0, 2]),), x[:2] > 0, True),
                       (X,)),
    "nonzero_static": (lambda x: (torch.nonzero_static(x > 1, size=9),
                                  torch.nonzero_static(x > 1, size=2, fill_value=7)), (X,)),
    "resize": (lambda x: x.clone().resize_(2, 3), (X,)),
    "embedding_bag_padding": (lambda w: (
        F.embedding_bag(torch.tensor([[1, 0, 2]]), w, mode="mean", padding_idx=0),
        F.embedding_bag(torch.tensor([[1, 0, 2]]), w, mode="max", padding_idx=1)), (X,)),
    "grid_cubic": (lambda x, g: (
        F.grid_sample(x, g, "bicubic", "zeros", False),
        F.grid_sample(x, g, "bicubic", "reflection", True)), (normal(1, 2, 4, 5),
                                                              normal(1, 3, 3, 2) / 3)),
    "grid_volume": (lambda x, g: (
        F.grid_sample(x, g, "bilinear", "border", False),
        F.grid_sample(x, g, "nearest", "zeros", True)), (normal(1, 2, 3, 4, 5),
                                                         normal(1, 2, 3, 3, 3) / 3)),
    "gamma_in_parts": (lambda a, b: (torch.igamma(a, b), torch.igammac(a, b)),
                       (X.abs(), normal(4, 5, seed=1).abs() * 3)),
    "bessel": (lambda x: (torch.i0(x), torch.special.i1(x), torch.special.i0e(x * 9),
                          torch.special.spherical_bessel_j0(x)), (X,)),
    "next_after": (lambda x: torch.nextafter(x, -x), (X,)),
    "polynomials": (lambda x: (torch.special.legendre_polynomial_p(x, 4),
                               torch.special.laguerre_polynomial_l(x, 3),
                               torch.special.hermite_polynomial_he(x, 5),
                               torch.special.chebyshev_polynomial_t(x / 9, 4)), (X,)),
    "batch_norm_with_update": (lambda x: torch.ops.aten._batch_norm_with_update_functional(
        x, x[0], x[1], x.mean(0) * 0, x.var(0), 0.1, 1e-5)[0], (X,)),
}


@pytest.mark.parametrize("name", ROWS)
def test_it_is_as_in_eager(name: str) -> None:
    fn, xs = ROWS[name]
    agree(fn, *xs)
