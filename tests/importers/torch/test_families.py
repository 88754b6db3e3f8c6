"""Every family of ATen handlers against torch eager, in float64 and on the types that promote."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from graphtool.errors import UnsupportedError
from tests.importers.torch.agreement import agree, normal

I64, I32, U8, F32 = torch.int64, torch.int32, torch.uint8, torch.float32
X, Y = normal(2, 3, 4), normal(2, 3, 4, seed=1)
POSITIVE = X.abs() + 0.1
N = normal(2, 3, 4, dtype=I64)
B = X > 0
INDEX = torch.tensor([[0, 2, 1], [1, 1, 0]])
IMAGE = normal(2, 4, 9, 8)

ELEMENTWISE = {
    "arithmetic": (lambda x, y: (x + y, x - y, x * y, x / y, -x, 2 - x, 3 / x), X, Y),
    "alpha": (lambda x, y: (torch.add(x, y, alpha=2.5), torch.sub(x, y, alpha=3),
                            torch.rsub(x, y, alpha=2)), X, Y),
    "int with float scalar": (lambda n: (n + 1.5, n * 0.5, n - 2.5, n / 2), N),
    "int with float tensor": (lambda n, x: (n + x, x * n, torch.maximum(x, n.to(x.dtype))), N, X),
    "int32 with int64": (lambda n, m: (n + m, n * m, n < m), N.to(I32), N + 1),
    "uint8 with int8": (lambda a, b: a + b, normal(3, dtype=I32).abs().to(U8),
                        torch.tensor([-1, 2, 3], dtype=torch.int8)),
    "float32 with float64 scalar tensor": (lambda x: x * torch.tensor(0.1, dtype=F32), X),
    "rank 0 does not promote": (lambda x, s: x.to(F32) * s, X, torch.tensor(0.5,
                                                                         dtype=torch.float64)),
    "bool arithmetic": (lambda a, b: (a + b, a * b, a + 1, a.sum()), B, ~B),
    "rounding division": (lambda x, y: (
        torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), x // y,
        torch.remainder(x, y), torch.fmod(x, y)), X, Y),
    "tenths": (lambda x: (x // 0.1, torch.floor_divide(x, 0.1)), torch.tensor([1.0, 0.3, -0.7])),
    "int division": (lambda n: (n // 2, n % 3, torch.div(n, -2, rounding_mode="trunc"),
                                torch.fmod(n, 2), n / 3), N),
    "power": (lambda x, n: (x ** 2, x ** 3.0, 2 ** x, x ** n, x ** -1, n.abs() ** 2),
              POSITIVE, N),
    "compare": (lambda x, y: (x < y, x >= 0, x == y, x != 1, x > 0.5, x <= y), X, Y),
    "compare int with float": (lambda n: (n < 0.5, n == 1.0, n >= 1.5), N),
    "logic": (lambda a, x: (a & (x > 1), a | ~a, a ^ (x < 0), torch.logical_and(x, a),
                            torch.logical_not(x)), B, X),
    "bits": (lambda n: (n & 5, n | 2, n ^ 3, ~n, n.abs() << 2, n >> 1), N),
    "where": (lambda c, x, n: (torch.where(c, x, 0.0), torch.where(c, n, x), torch.where(c, 1, 0),
                               x.masked_fill(c, -1)), B, X, N),
    "clamp": (lambda x, n: (x.clamp(-1, 1), x.clamp(min=0), n.clamp(max=1),
                            torch.clamp(x, max=torch.tensor(0.5, dtype=x.dtype))), X, N),
    "casts": (lambda x, n: (x.to(I64), x.to(F32), n.to(F32), x.bool(), n.to(U8), x.int()), POSITIVE,
              N.abs()),
    "rounding": (lambda x, n: (x.floor(), x.ceil(), x.round(), x.trunc(), n.floor(), n.ceil(),
                               torch.round(x, decimals=2), x.frac()), X, N),
    "exponentials": (lambda x: (x.exp(), x.log(), x.log2(), x.log10(), x.log1p(), x.expm1(),
                                x.sqrt(), x.rsqrt(), x.sigmoid(), x.exp2()), POSITIVE),
    "trigonometry": (lambda x: (x.sin(), x.cos(), x.tan(), x.atan(), x.sinh(), x.cosh(), x.tanh(),
                                x.asinh(), torch.atan2(x, x + 1)), X),
    "inverse": (lambda x: (x.asin(), x.acos(), x.atanh(), (x + 2).acosh(), x.erf(), x.erfc(),
                           x.erfinv()), X.tanh() * 0.9),
    "integer to float": (lambda n: (n.exp(), n.sin(), n.sqrt(), n.sigmoid()), N.to(I32).abs()),
    "classify": (lambda x, n: (x.isnan(), x.isinf(), x.isfinite(), n.isnan(), n.isfinite(),
                               torch.nan_to_num(x)),
                 torch.tensor([1.0, float("nan"), float("inf"), -float("inf")]), N),
    "sign": (lambda x, y: (x.sign(), x.abs(), torch.copysign(x, y), torch.hypot(x, y)), X, Y),
    "mixes": (lambda x, y: (torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=2),
                            torch.addcdiv(x, x, y + 5), torch.logaddexp(x, y),
                            torch.xlogy(x.abs(), y.abs()), torch.fmax(x, y), torch.fmin(x, y)),
              X, Y),
    "special": (lambda x: (x.lgamma(), x.digamma()), POSITIVE),
}

ACTIVATIONS = {
    "pointwise": (lambda x: (
        F.relu(x), F.relu6(x), F.silu(x), F.mish(x), F.softplus(x), F.softplus(x, 2, 3), F.elu(x),
        F.selu(x), F.celu(x, 0.7), F.leaky_relu(x, 0.2), F.hardsigmoid(x), F.hardswish(x),
        F.hardtanh(x, -0.5, 0.5), F.logsigmoid(x), F.softsign(x), F.tanhshrink(x),
        F.hardshrink(x), F.softshrink(x), F.threshold(x, 0.1, 20))
        , X * 3),
    "gelu": (lambda x: (F.gelu(x), F.gelu(x, approximate="tanh")), X),
    "prelu": (lambda x, w: F.prelu(x, w), X, normal(3)),
    "glu": (lambda x: F.glu(x, 2), X),
    "softmax": (lambda x: (x.softmax(-1), x.softmax(0), F.log_softmax(x, 1), x.logsumexp(1),
                           F.softmin(x, 1)), X),
    "softmax dtype": (lambda x: F.softmax(x.to(F32), -1, dtype=torch.float64), X),
}

SHAPES = {
    "view": (lambda x: (x.view(6, 4), x.reshape(-1), x.flatten(1), x.unflatten(2, (2, 2)),
                        x.unsqueeze(1), x[:, :1].squeeze(1), x.squeeze()), X),
    "transpose": (lambda x: (x.permute(2, 0, 1), x.transpose(0, 2), x[0].t(), x.mT,
                             x.movedim(0, 2)), X),
    "expand": (lambda x: (x[:, :1].expand(2, 5, 4), x.expand(3, -1, -1, -1),
                          x.broadcast_to(2, 2, 3, 4)), X),
    "slices": (lambda x: (x[:, 1:], x[..., ::2], x[-1], x[:, -2:], x[:, :-1, 1], x[1, 2, 3],
                          x.narrow(2, 1, 2), x.select(1, -1), x[:, 5:], x[:, :100]), X),
    "splits": (lambda x: (x.split(2, 2), x.chunk(3, 1), x.split([1, 3], 2), x.unbind(1),
                          x.tensor_split(3, 2), x.chunk(5, 2)), X),
    "joins": (lambda x, y, n: (torch.cat([x, y], 1), torch.stack([x, y], 1), torch.cat([x, n], 0),
                               torch.cat([x, x.new_zeros(0)], 0), torch.hstack([x, y])), X, Y, N),
    "repeats": (lambda x: (x.repeat(2, 1, 3), x.repeat(2, 1, 1, 1), x.tile(2),
                           x.repeat_interleave(3, 1), x.roll(1, 2), x.roll((1, -2), (0, 2)),
                           x.roll(5), x.flip(0, 2), x.rot90(1, (1, 2)), x.rot90(3, (0, 1))), X),
    "pads": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, -1, 0, 2), value=3.0),
                        F.pad(x, (2, 1), "reflect"), F.pad(x, (3, 2), "replicate"),
                        F.pad(x, (2, 1), "circular")), X),
    "pads 2d": (lambda x: (F.pad(x, (1, 2, 2, 1), "reflect"), F.pad(x, (1, 2, 2, 1), "replicate"),
                           F.pad(x, (1, 2, 2, 1), "circular")), IMAGE),
    "diagonals": (lambda x: (x.diagonal(), x.diagonal(1, 1, 2), x.diagonal(-1, 0, 2),
                             x[0].diag(), torch.diag_embed(x)), X),
    "strides": (lambda x: (x.as_strided((2, 3), (4, 1), 2), x.as_strided((3, 3), (1, 2))), X),
    "unfold": (lambda x: (x.unfold(2, 2, 1), x.unfold(1, 3, 2)), X),
    "shuffles": (lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x[..., :8, :], 2),
                            F.channel_shuffle(x, 2)), IMAGE),
    "im2col": (lambda x: F.unfold(x, 3, padding=1, stride=2), IMAGE),
    "triangles": (lambda x: (x.tril(), x.triu(1), x.tril(-1), x.triu(-1)), X),
    "meshgrid": (lambda x: torch.meshgrid(x[0, 0], x[0, 1], indexing="ij"), X),
}

CREATION = {
    "filled": (lambda x: (torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 7),
                          torch.full_like(x, 1.5), x.new_zeros(3), x.new_full((2,), 2.0)), X),
    "ranges": (lambda x: (torch.arange(5), torch.arange(1, 10, 3), torch.arange(0.0, 1.0, 0.25),
                          torch.arange(5, device=x.device).to(x.dtype) + x[0, 0, 0],
                          torch.linspace(0, 1, 7, dtype=torch.float64)), X),
    "eye": (lambda x: (torch.eye(3), torch.eye(2, 4, dtype=I64), x[0] @ torch.eye(4).to(x)), X),
    "one hot": (lambda i: (F.one_hot(i, 3), F.one_hot(i, 5)), INDEX),
    "masks": (lambda x: torch.full((4, 4), float("-inf")).triu(1) + x[0, 0], X.to(F32)),
}

REDUCTIONS = {
    "sums": (lambda x, n: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), n.sum(), n.sum(1),
                           x.sum(-1, dtype=F32), n.prod(2), x.prod(), x.nansum(1)), X, N),
    "means": (lambda x: (x.mean(), x.mean(-1, keepdim=True), x.mean((1, 2)), x.var(1), x.var(),
                         x.std(2, correction=0), torch.var_mean(x, 1), torch.std_mean(x, (0, 2)),
                         x.var((0, 1), keepdim=True)), X),
    "extremes": (lambda x, n: (x.max(), x.min(), x.amax(1), x.amin((0, 2)), x.max(1),
                               x.min(2, True), n.max(0), torch.aminmax(x, dim=1)), X, N),
    "positions": (lambda x, n: (x.argmax(), x.argmax(1), x.argmin(2, keepdim=True), n.argmax(1)),
                  X, N),
    "logic": (lambda b, x: (b.any(), b.all(1), b.any(2, keepdim=True), x.any(), x.all()), B, X),
    "norms": (lambda x: (x.norm(), x.norm(dim=1), x.norm(1, 2), torch.linalg.vector_norm(x, 3, 1),
                         torch.linalg.vector_norm(x, float("inf")), F.normalize(x, dim=1)), X),
    "running": (lambda x, n: (x.cumsum(1), x.cumprod(2), n.cumsum(0), x.logcumsumexp(1),
                              x.cummax(1)[0], x.diff(dim=1)), X, N),
    "sorting": (lambda x: (x.sort(1), x.sort(2, descending=True), x.topk(2, 1),
                           x.topk(1, 2, largest=False), x.argsort(1), x.kthvalue(2, 1),
                           x.median(1), x.median()), X),
    "counts": (lambda x: (torch.count_nonzero(x, 1), torch.cdist(x, x + 1)), X),
}

INDEXING = {
    "embedding": (lambda i, w: F.embedding(i, w), INDEX, normal(3, 5)),
    "bags": (lambda i, w, s, v: (
        F.embedding_bag(i, w, s), F.embedding_bag(i, w, s, mode="sum", per_sample_weights=v),
        F.embedding_bag(i, w, s, mode="max")), torch.tensor([0, 2, 1, 1, 0]), normal(3, 4),
        torch.tensor([0, 2, 2]), normal(5)),
    "gather": (lambda x, i: (x[0].gather(0, i), x[0].gather(1, i), torch.take_along_dim(
        x[0][:2, :3], i, 1)), X, INDEX),
    "select": (lambda x, i: (x.index_select(1, i[0]), x.index_select(2, i[1]), x.take(i)), X,
               INDEX),
    "advanced": (lambda x, i: (x[:, i], x[:, i, i], x[i[:, :2].clamp(max=1), :, i[:, :2]],
                               x[..., i[0]], x[i[1], i[0]]), X, INDEX),
    "negative": (lambda x, i: (x[:, i - 2], x[:, :, i - 4]), X, INDEX),
    "put": (lambda x, i, v: (x.index_put((i[1],), v), x.index_put((i[1], i[0]), v[0],
                                                                  accumulate=True)),
            X, INDEX, normal(3, 3, 4)),
    "assign": (lambda x, i: (_assigned(x, i)), X, INDEX),
    "masked": (lambda x, b, y: (_mask_assigned(x, b), x.masked_scatter(b, y)), X, B, Y),
    "scatter": (lambda x, i, s: (x[0].scatter(0, i, s), x[0].scatter(1, i, 2.0),
                                 x[0].scatter_add(0, i, s), x[0].scatter_add(1, i, s)),
                X, INDEX, normal(2, 3, seed=3)),
    "reduce": (lambda x, i, s: tuple(
        x[0].scatter_reduce(0, i, s, how, include_self=own)
        for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)),
        X, INDEX, normal(2, 3, seed=3)),
    "add": (lambda x, i, s: (x.index_add(1, i[0], s), x.index_add(1, i[0], s, alpha=2),
                             x.index_copy(1, i[0], s), x.index_fill(1, i[1], 3.0)),
            X, INDEX, Y),
    "into slices": (lambda x, s: (
        torch.slice_scatter(x, s[:, :, :2], 2, 1, 3),
        torch.slice_scatter(x, s[:, :, :2], 2, 0, 4, 2),
        torch.select_scatter(x, s[:, 0], 1, -1), torch.diagonal_scatter(x[0], s[0, :, 0])), X, Y),
}


def _assigned(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[:, 1:] = 0
    x[0, :, 2] += 1
    x[:, i[0], 0] = 5.0
    return x


def _mask_assigned(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[mask] = -1.0
    return x


Q, K, V = normal(2, 4, 5, 8), normal(2, 4, 7, 8, seed=1), normal(2, 4, 7, 6, seed=2)
LINEAR = {
    "products": (lambda x, y: (x @ y.mT, x[0] @ y[0].t(), x[0, 0] @ y[0, 0], x @ y[0, 0],
                               torch.bmm(x, y.mT), x[0, 0].outer(y[0, 0])), X, Y),
    "addmm": (lambda x, y, b: (torch.addmm(b, x[0], y[0].t(), beta=2, alpha=0.5),
                               torch.baddbmm(b, x, y.mT), torch.addmv(b[0], y[0], x[0, 0])),
              X, Y, normal(3, 3)),
    "einsum": (lambda x, y: (torch.einsum("bij,bkj->bik", x, y), torch.einsum("bij->j", x),
                             torch.einsum("bij,bij->b", x, y)), X, Y),
    "linear": (lambda x, w, b: (F.linear(x, w, b), F.linear(x[0, 0], w),
                                   F.linear(x, w[0])), X, normal(5, 4), normal(5)),
    "bilinear": (lambda x, w: F.bilinear(x, x, w), X, normal(2, 4, 4)),
    "conv": (lambda x, w, b: (
        F.conv2d(x, w, b), F.conv2d(x, w, stride=2, padding=1), F.conv2d(x, w, dilation=2),
        F.conv2d(x, w, padding="same"), F.conv2d(x, w[:, :2], groups=2), F.conv2d(x[0], w)),
        IMAGE, normal(6, 4, 3, 3), normal(6)),
    "conv 1d 3d": (lambda x, w, v: (F.conv1d(x, w, padding=1), F.conv3d(x[None, None], v)),
                   X, normal(5, 3, 3), normal(2, 1, 2, 2, 2)),
    "transposed": (lambda x, w, b: (
        F.conv_transpose2d(x, w, b, stride=2), F.conv_transpose2d(x, w, stride=2, padding=1,
                                                                 output_padding=1),
        F.conv_transpose2d(x, w, groups=2), F.conv_transpose2d(x, w, dilation=2),
        F.conv_transpose2d(x[0], w)), IMAGE, normal(4, 3, 3, 3), normal(3)),
    "attention": (lambda q, k, v: (
        F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(
            q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, scale=0.3),
        F.scaled_dot_product_attention(q[0], k[0], v[0]),
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)), Q, K, V),
    "attention masks": (lambda q, k, v, m: (
        F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, m > 0),
        F.scaled_dot_product_attention(q, k, v, m[0, 0])), Q, K, V, normal(2, 1, 5, 7)),
}

POOLS = {
    "max": (lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, 2,
            ceil_mode=True), F.max_pool2d(x, (3, 2), dilation=2), F.max_pool2d(x[0], 2),
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True)), IMAGE),
    "average": (lambda x: (
        F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1,
                                                                  count_include_pad=False),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(
            x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        F.avg_pool2d(x, 2, divisor_override=3), F.avg_pool2d(x[0], 2)), IMAGE),
    "one and three dims": (lambda x, y: (F.max_pool1d(x, 2), F.avg_pool1d(x, 2, 1), F.max_pool3d(
        y, 2), F.avg_pool3d(y, 2), F.max_pool1d(x[0], 2)), X, normal(1, 2, 4, 4, 4)),
    "adaptive": (lambda x: (
        F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_avg_pool2d(
            x, (4, 3)), F.adaptive_max_pool2d(x, (4, 3)), F.adaptive_avg_pool2d(x, (None, 2)),
        F.adaptive_avg_pool1d(x[0], 5), F.lp_pool2d(x, 2, 3)), IMAGE),
    "nearest": (lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 13)),
                           F.interpolate(x, scale_factor=1.3), F.interpolate(
                               x, size=(5, 13), mode="nearest-exact")), IMAGE),
    "bilinear": (lambda x: (
        F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(
            x, size=(5, 13), mode="bilinear", align_corners=True),
        F.interpolate(x, size=(4, 20), mode="bilinear"), F.interpolate(
            x, scale_factor=1.7, mode="bilinear"),
        F.interpolate(x, size=(4, 5), mode="bilinear", antialias=True)), IMAGE),
    "bicubic": (lambda x: [F.interpolate(
        x, size, mode="bicubic", align_corners=corners, antialias=smooth) for size in (
            (5, 13), (4, 3), (1, 9)) for corners in (False, True) for smooth in (False, True)],
        IMAGE),
    "linear": (lambda x: F.interpolate(x, size=7, mode="linear"), X),
    "max with indices": (lambda x: (
        F.max_pool2d(x, 3, 2, 1, return_indices=True), F.max_pool2d(x, 2, return_indices=True),
        F.max_pool2d(x, (2, 3), 2, ceil_mode=True, dilation=2, return_indices=True)[1],
        F.max_pool1d(x[0], 2, return_indices=True)), IMAGE),
    "fold": (lambda x: (F.fold(F.unfold(x, 3, padding=1, stride=2), (9, 8), 3, padding=1, stride=2),
                        F.fold(F.unfold(x, 2, dilation=2), (9, 8), 2, dilation=2)), IMAGE),
    "grid": (lambda x, g: tuple(
        F.grid_sample(x, g, mode=mode, padding_mode=pad, align_corners=corners)
        for mode in ("bilinear", "nearest") for pad in ("zeros", "border", "reflection")
        for corners in (True, False)), IMAGE, normal(2, 3, 5, 2)),
}

G = normal(4)
NORMS = {
    "layer": (lambda x, g: (F.layer_norm(x, (4,), g, g), F.layer_norm(x, (3, 4)), F.rms_norm(
        x, (4,), g), F.rms_norm(x, (3, 4), eps=1e-3)), X, G),
    "group": (lambda x, g: (F.group_norm(x, 2, g, g), F.group_norm(x, 4), F.instance_norm(x),
                            F.instance_norm(x, weight=g, bias=g)), IMAGE, G),
    "batch": (lambda x, g: (F.batch_norm(x, g, g.abs(), g, g), F.batch_norm(x, g, g.abs()),
                            F.batch_norm(x, None, None, g, g, training=True)), IMAGE, G),
    "local response": (lambda x: F.local_response_norm(x, 3), IMAGE),
}

LOSSES = {
    "regression": (lambda x, y: (F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y),
                                 F.huber_loss(x, y, delta=0.5)), X, Y),
    "classes": (lambda x, t: (F.cross_entropy(x, t), F.nll_loss(F.log_softmax(x, 1), t),
                              F.cross_entropy(x, t, label_smoothing=0.1)),
                normal(4, 3), torch.tensor([0, 2, 1, 1])),
    "binary": (lambda x, y: (F.binary_cross_entropy_with_logits(x, y), F.binary_cross_entropy(
        x.sigmoid(), y), F.kl_div(x, y, reduction="sum")), X, Y.sigmoid()),
}
FAMILIES = {"elementwise": ELEMENTWISE, "activations": ACTIVATIONS, "shapes": SHAPES,
            "creation": CREATION, "reductions": REDUCTIONS, "indexing": INDEXING,
            "linear": LINEAR, "pools": POOLS, "norms": NORMS, "losses": LOSSES}
CASES = [pytest.param(*case, id=f"{family}: {name}") for family, table in FAMILIES.items()
         for name, case in ((n, (c[0], c[1:])) for n, c in table.items())]


@pytest.mark.parametrize(("fn", "args"), CASES)
def test_handlers(fn, args):
    agree(fn, *args, tol=1e-6 if any(a.dtype in (F32, I32) for a in args) else 1e-9)


RECURRENT = [
    (nn.LSTM(3, 4, 2, bidirectional=True), normal(5, 2, 3)),
    (nn.LSTM(3, 4, batch_first=True, bias=False), normal(2, 5, 3)),
    (nn.GRU(3, 4, 2, bidirectional=True), normal(5, 2, 3)),
    (nn.GRU(3, 4, batch_first=True), normal(2, 5, 3)),
    (nn.RNN(3, 4, 2), normal(5, 2, 3)),
    (nn.RNN(3, 4, nonlinearity="relu", bidirectional=True), normal(5, 2, 3)),
]


@pytest.mark.parametrize(("cell", "x"), RECURRENT, ids=lambda v: str(v)[:40])
def test_recurrent(cell, x):
    module = agree(cell.double().eval(), x)
    assert sum(n.op.name in ("lstm", "gru", "rnn") for n in module.graph.nodes) == cell.num_layers


@pytest.mark.parametrize("cell", [
    nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True), nn.LSTM(3, 4, proj_size=1, bias=False)])
def test_recurrent_with_projections(cell):
    agree(cell.double().eval(), normal(5, 2, 3))


def test_packed_sequences_are_refused():
    cell = nn.LSTM(3, 4)

    def packed(x):
        rows = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
        return nn.utils.rnn.pad_packed_sequence(cell(rows)[0])[0]
    with pytest.raises(UnsupportedError, match="packed sequences") as found:
        agree(packed, normal(5, 2, 3, dtype=F32))
    assert found.value.code == "GT1102" and "padded tensor" in found.value.hint
    assert packed(normal(5, 2, 3, dtype=F32)).shape == (5, 2, 4)


KEPT = {
    "linear": nn.Linear(4, 3), "layer_norm": nn.LayerNorm(4), "rms_norm": nn.RMSNorm(4),
    "gelu": nn.GELU(), "silu": nn.SiLU(), "softmax": nn.Softmax(-1), "hard_swish": nn.Hardswish(),
    "log_softmax": nn.LogSoftmax(-1), "relu": nn.ReLU(), "group_norm": nn.GroupNorm(3, 3),
    "instance_norm": nn.InstanceNorm1d(3), "batch_norm": nn.BatchNorm1d(3),
    "conv": nn.Conv1d(3, 2, 2), "max_pool": nn.MaxPool1d(2), "avg_pool": nn.AvgPool1d(2),
    "softplus": nn.Softplus(), "elu": nn.ELU(), "mish": nn.Mish(),
    "resize": nn.Upsample(scale_factor=2),
}


@pytest.mark.parametrize("op", KEPT)
def test_composites_stay_whole(op):
    """Speed or numerics would be lost if they came in pieces."""
    module = agree(KEPT[op].double().eval(), X)
    assert [n.op.name for n in module.graph.nodes].count(op) == 1
