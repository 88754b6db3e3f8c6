"""What torch's own samples turned up as wrong or missing, one row each, against eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from graphtool import build, interp, load
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.torch import import_torch
from tests.importers.torch.agreement import Function, agree, normal

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about its own
X = normal(4, 5)
WHOLE = torch.tensor([[6, -4, 0], [9, 12, 7]])
NAN = torch.tensor([[1.0, float("nan"), 3, 2], [5, 4, 3, 1]]).double()
STRANGE = normal(2, 3, 5, 6)
STRANGE[0, 1, 3, 2], STRANGE[1, 2, 0, 0] = float("nan"), float("inf")
TARGETS = torch.tensor([[1, 1, 3, 1], [-1, -1, -1, -1], [4, 5, 0, 0]])
ROWS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add_bool_alpha": (lambda a, b: torch.add(a, b, alpha=False), (X > 0, X > 1)),
    "sign_bool": (torch.sign, (X > 0,)),
    "bins_of_one_length_nan": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (STRANGE,)),
    "bins_of_several_lengths_nan": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (STRANGE,)),
    "more_bins_than_elements_nan": (lambda x: F.adaptive_avg_pool2d(x, (7, 9)), (STRANGE,)),
    "no_bins": (lambda x: F.adaptive_avg_pool2d(x, (0, 3)), (STRANGE,)),
    "bins_of_a_row": (lambda x: F.adaptive_avg_pool1d(x, 4), (normal(2, 3, 10),)),
    "bins_of_a_volume": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), (normal(2, 5, 7, 4),)),
    "sign_nan": (lambda x: (torch.sign(x), torch.sgn(-x), x.float().sign()), (NAN - 2,)),
    "gather_nothing": (lambda x: x.gather(0, torch.empty(0, dtype=torch.int64)), (X,)),
    "var_mean_biased": (lambda x: (*torch.std_mean(x, False), *torch.var_mean(x, unbiased=False)),
                        (X,)),
    "masked_select_broadcast": (torch.masked_select, (normal(10, 1, 10), normal(10, 10) > -1)),
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
    "repeat_by_constant": (lambda x: torch.repeat_interleave(x, torch.tensor([1, 0, 2, 3]), 0),
                           (X,)),
    "repeat_flat": (lambda x, r: torch.repeat_interleave(x, r), (X, torch.tensor(2))),
    "repeat_by_data": (lambda x, r: torch.repeat_interleave(x, r, 1),
                       (X, torch.tensor([1, 0, 2, 3, 1]))),
    "bincount": (lambda i, w: (torch.bincount(i), torch.bincount(i, w, 9)),
                 (torch.tensor([1, 2, 2, 5]), normal(4))),
    "unique_rows": (lambda x: torch.unique(x.round(), dim=0, return_inverse=True,
                                           return_counts=True), (normal(9, 2),)),
    "unique_columns": (lambda x: torch.unique(x > 0, dim=1), (normal(2, 7, 2),)),
    "fractional_pool": (lambda x, s: F.fractional_max_pool2d(
        x, (2, 3), (3, 4), return_indices=True, _random_samples=s),
        (normal(2, 3, 7, 9), torch.rand(2, 3, 2, dtype=torch.float64))),
    "fractional_pool_volume": (lambda x, s: F.fractional_max_pool3d(
        x, (2, 1, 3), (3, 4, 1), return_indices=True, _random_samples=s),
        (normal(3, 7, 6, 5), torch.rand(1, 3, 3, dtype=torch.float64))),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + torch.eye(4)), (X,)),
    "det_of_nothing": (lambda x: (torch.linalg.det(x), torch.linalg.slogdet(x)[1]),
                       (normal(2, 0, 0),)),
    "qr_complete": (lambda x: torch.linalg.qr(x, "complete"), (normal(5, 3),)),
    "solve_from_the_right": (lambda a, b: torch.linalg.solve(a, b, left=False),
                             (normal(4, 4), X.T.contiguous())),
    "lu_solve_adjoint": (lambda a, b: torch.linalg.lu_solve(
        *torch.linalg.lu_factor(a), b, left=False, adjoint=True), (normal(4, 4), X.T.contiguous())),
    "singular_values": (lambda x: (torch.linalg.svdvals(x), torch.linalg.cond(x),
                                   torch.linalg.matrix_norm(x, "nuc"),
                                   torch.linalg.matrix_rank(x[:, :1] * x[:1])), (X,)),
    "svd": (lambda x: (lambda u, s, vt: ((u * s[..., None, :]) @ vt, s))(
        *torch.linalg.svd(x, full_matrices=False)), (normal(2, 3, 6),)),
    "svd_full": (lambda x: (lambda u, s, vt: (u[:, :3] * s) @ vt)(*torch.linalg.svd(x)),
                 (normal(5, 3),)),
    "eigh": (lambda x: (lambda w, v: (w, (v * w) @ v.mT, torch.linalg.eigvalsh(x, UPLO="U")))(
        *torch.linalg.eigh(x)), (normal(5, 5),)),
    "pseudo_inverse": (lambda x: (torch.linalg.pinv(x), torch.linalg.pinv(x, atol=1.5),
                                  torch.linalg.pinv(x @ x.mT, hermitian=True, rtol=1e-9)), (X,)),
    "least_squares": (lambda a, b: (torch.linalg.lstsq(a, b).solution,
                                    torch.linalg.lstsq(a.mT, a[:3].mT).solution),
                      (normal(6, 3), normal(6, 2))),
    "unique_runs": (lambda x: torch.unique_consecutive(x > 0, dim=0, return_inverse=True,
                                                       return_counts=True), (normal(9, 2),)),
    "unique_run_columns": (lambda x: torch.unique_consecutive(x > 0, dim=1),
                           (normal(1, 9, 2),)),
    "unique_places_alone": (lambda x: torch.unique(x > 0, return_inverse=True)[1], (X,)),
    "alignments": (lambda x, n, m: (
        F.ctc_loss(x.log_softmax(-1), TARGETS, n, m, reduction="none", blank=2),
        F.ctc_loss(x.log_softmax(-1), TARGETS.clamp(0), (12, 9, 2), (4, 0, 2), reduction="sum",
                   blank=2, zero_infinity=True)),
                   (normal(12, 3, 6), torch.tensor([12, 10, 5]), torch.tensor([4, 0, 2]))),
    "alignments_of_one_vector": (lambda x, t: (
        F.ctc_loss(x.log_softmax(-1), torch.tensor([1, 2, 3, 2]), (12, 9, 7), (3, 0, 1)),
        F.ctc_loss(x.log_softmax(-1), t, torch.tensor([12, 9, 7]), torch.tensor([2, 2, 1]))),
                                (normal(12, 3, 6), torch.tensor([1, 2, 2, 5, 4]))),
    "alignments_with_blanks": (lambda x, t: F.ctc_loss(
        x.log_softmax(-1), t, (12, 9, 7), (4, 3, 2), reduction="none"),
                               (normal(12, 3, 6), torch.tensor([[0, 2, 0, 0], [2, 0, 2, 1],
                                                                [0, 1, 1, 1]]))),
    "alignments_by_numbers": (lambda x: F.ctc_loss(
        x.log_softmax(-1), torch.ones(3, 4, dtype=torch.int64) * 2, (12, 9, 7), (4, 0, 2)),
                              (normal(12, 3, 6),)),
    "numbers_in_vmap": (torch.vmap(lambda x: x.sin() * 2), (X,)),
    "fake_quantised": (lambda x: (
        torch.fake_quantize_per_tensor_affine(x, 0.05, 3, 0, 63),
        torch.fake_quantize_per_channel_affine(
            x, torch.full((5,), 0.02), torch.zeros(5, dtype=torch.int32), 1, -128, 127)),
                       (X.float(),)),
    "extremes_places": (lambda x: (x.max(1).indices, x.min(0)[1], x.kthvalue(2).indices,
                                   x.median(1).indices, x.mode(0).indices, x.cummax(0).indices,
                                   x.sort().indices, x.topk(2).indices, x.aminmax().max), (X,)),
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


class Observed(nn.Module):
    """Weights and results through numbers that follow their bounds, as training for int8 does."""

    def __init__(self) -> None:
        super().__init__()
        from torch.ao import quantization as q
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 6)
        self.of_y = q.FusedMovingAvgObsFakeQuantize(quant_min=0, quant_max=255)
        self.of_w = q.FusedMovingAvgObsFakeQuantize(
            observer=q.MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
            dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.of_y(F.linear(x, self.of_w(self.linear.weight), self.linear.bias))


def test_observers_follow_their_bounds() -> None:
    model, x = Observed().train(), normal(3, 8, dtype=torch.float32)
    model(x)  # which sizes what they keep
    module = import_torch(copy.deepcopy(model), (x * 2,))
    names = [v.hint for v in module.graph.inputs]
    states = {names[i]: w.source for i, w in module.initial.items()}
    got = interp.run(module, {"x": x.numpy() * 2, **states})
    want = model(x * 2)
    np.testing.assert_allclose(next(iter(got.values())), want.detach().numpy(), atol=1e-6)
    for name, buffer in model.named_buffers():
        if name in got:
            np.testing.assert_allclose(got[name], buffer.numpy(), rtol=1e-6, err_msg=name)


class Counted(nn.Module):
    """A result as long as the data say, bounded or not."""

    def __init__(self, bounded: bool) -> None:
        super().__init__()
        self.bounded = bounded

    def forward(self, x: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        y = torch.repeat_interleave(x, r, 0)
        if self.bounded:
            torch._check(y.shape[0] <= 40)
        return y


@pytest.mark.parametrize("name", ["repeat_by_constant", "unique_rows", "fractional_pool"])
def test_a_bound_of_its_own_lets_it_compile(name: str, tmp_path: Path) -> None:
    fn, xs = ROWS[name]
    _same_when_compiled(Function(fn), xs, tmp_path)


def test_the_user_can_bound_repeats(tmp_path: Path) -> None:
    xs = X, torch.tensor([1, 0, 2, 3])
    _same_when_compiled(Counted(True), xs, tmp_path)
    with pytest.raises(InputError, match=r"GT2005.*u0 has[\s\S]*torch\._check"):
        build(import_torch(Counted(False), xs), tmp_path / "open")


def _same_when_compiled(model: nn.Module, xs: tuple[torch.Tensor, ...], path: Path) -> None:
    module = import_torch(model, xs)
    names = [v.hint for v in module.graph.inputs]
    got = load(build(module, path / "built")).run(
        {n: x.numpy() for n, x in zip(names, xs, strict=True)})
    wanted = pytree.tree_leaves(model(*xs))
    for g, w in zip(got.values(), wanted, strict=True):
        np.testing.assert_array_equal(g, w.numpy())


def test_histograms_of_several_axes_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"histogramdd.*: histograms with edges"):
        import_torch(Function(lambda x: torch.histogramdd(x, (3, 3)).hist), (X[:, :2],))
