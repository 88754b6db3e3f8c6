"""Lines that call layers of torch.nn, convolutions, attention, losses and products."""

from __future__ import annotations

from torch import nn

from tests.lab.fuzz.module_rows import op
from tests.lab.fuzz.modules import GrowingModule


def image(g: GrowingModule, dims: int) -> str:
    """A value of a batch of images of so many dimensions."""
    fits = [n for n, v in g.values.items() if v.ndim == dims + 2 and v.is_floating_point()
            and v.itemsize >= 4 and min(v.shape) > 0 and v.numel() < 2000]
    if fits and g.coin(0.6):
        return str(g.pick(*fits))
    return g.fresh("F", (g.pick(1, 2, 3), g.pick(1, 2, 3, 4, 8), *(
        g.rng.randint(3, 8 if dims < 3 else 4) for _ in range(dims))))


def call(g: GrowingModule, layer: nn.Module, x: str, before: str = "", after: str = "") -> None:
    """A line that applies a layer, of the dtype of its operand."""
    g.add(f"{g.layer(layer.to(g.values[x].dtype))}({x}{before}){after}")


@op("nn.Linear", "nn.LayerNorm", "nn.RMSNorm", "nn.Bilinear", "nn.PReLU", "nn.Dropout",
    "nn.Embedding", "nn.Sequential")
def dense(g: GrowingModule, name: str) -> None:
    x = g.take("f", 1 if name in ("nn.PReLU", "nn.Dropout") else 2, least=1)
    n, m = g.sizes(x)[-1], g.pick(1, 3, 8)
    if name == "nn.Embedding":
        at = g.take("l", 1, 2)
        table = nn.Embedding(11, 4)
        g.add(f"{g.layer(table.double() if g.wide else table)}({at} % 11)")
        return
    layers = {
        "nn.Linear": lambda: nn.Linear(n, m, bias=g.coin()),
        "nn.LayerNorm": lambda: nn.LayerNorm(n, elementwise_affine=g.coin()),
        "nn.RMSNorm": lambda: nn.RMSNorm(n), "nn.PReLU": lambda: nn.PReLU(1),
        "nn.Dropout": lambda: nn.Dropout(0.0 if g.training else 0.5),
        "nn.Bilinear": lambda: nn.Bilinear(n, n, m), "nn.Sequential": lambda: nn.Sequential(
            nn.Linear(n, 6), g.pick(nn.GELU(), nn.ReLU(), nn.SiLU()), nn.Linear(6, m))}
    call(g, layers[name](), x, f", {x}" if name == "nn.Bilinear" else "")


@op("nn.Conv", "nn.ConvTranspose", "nn.BatchNorm", "nn.InstanceNorm", "nn.GroupNorm",
    "nn.MaxPool", "nn.AvgPool", "nn.AdaptiveAvgPool", "nn.AdaptiveMaxPool", "nn.LPPool",
    "nn.ReflectionPad", "nn.ReplicationPad", "nn.Upsample", "nn.PixelShuffle", "nn.Flatten",
    "nn.LocalResponseNorm", "nn.ChannelShuffle", "nn.Unfold", "nn.Softmax2d", "nn.CircularPad")
def spatial(g: GrowingModule, name: str) -> None:
    flat = ("nn.LPPool", "nn.PixelShuffle", "nn.ChannelShuffle", "nn.Unfold", "nn.Softmax2d",
            "nn.LocalResponseNorm")
    dims = 2 if name in flat else g.pick(1, 2, 2, 3)
    x = image(g, dims)
    c, k = g.sizes(x)[1], g.rng.randint(1, min(3, *g.sizes(x)[2:]))
    group = g.pick(*[d for d in range(1, c + 1) if c % d == 0])

    def of(kind: str) -> type[nn.Module]:
        found: type[nn.Module] = getattr(nn, f"{kind.removeprefix('nn.')}{dims}d")
        return found
    stride, pad = g.pick(1, 1, 2), g.rng.randint(0, k // 2)
    layers = {
        "nn.Conv": lambda: of(name)(c, group * g.pick(1, 2, 4), k, stride, pad, groups=group,
                                    dilation=g.pick(1, 1, 2), bias=g.coin()),
        "nn.ConvTranspose": lambda: of(name)(c, group * g.pick(1, 2), k, stride, pad,
                                             groups=group, bias=g.coin()),
        "nn.BatchNorm": lambda: of(name)(c, affine=g.coin(0.8),
                                         track_running_stats=not g.training),
        "nn.InstanceNorm": lambda: of(name)(c, affine=g.coin()),
        "nn.GroupNorm": lambda: nn.GroupNorm(group, c),
        "nn.MaxPool": lambda: of(name)(k, stride, pad, ceil_mode=g.coin(0.3)),
        "nn.AvgPool": lambda: of(name)(k, stride, pad, ceil_mode=g.coin(0.3),
                                       count_include_pad=g.coin()),
        "nn.AdaptiveAvgPool": lambda: of(name)(g.pick(1, 2, 3)),
        "nn.AdaptiveMaxPool": lambda: of(name)(g.pick(1, 2, 3)),
        "nn.LPPool": lambda: nn.LPPool2d(2, k), "nn.ReflectionPad": lambda: of(name)(k - 1),
        "nn.ReplicationPad": lambda: of(name)(k), "nn.CircularPad": lambda: of(name)(k - 1),
        "nn.Upsample": lambda: nn.Upsample(scale_factor=g.pick(2, 1.5), mode=g.pick(
            "nearest", {1: "linear", 2: "bilinear", 3: "trilinear"}[dims])),
        "nn.PixelShuffle": lambda: nn.PixelShuffle(2) if c % 4 == 0 else nn.PixelUnshuffle(2),
        "nn.Flatten": lambda: nn.Flatten(g.pick(0, 1, 2)),
        "nn.LocalResponseNorm": lambda: nn.LocalResponseNorm(g.pick(2, 3)),
        "nn.ChannelShuffle": lambda: nn.ChannelShuffle(group),
        "nn.Unfold": lambda: nn.Unfold(k, padding=pad, stride=stride),
        "nn.Softmax2d": lambda: nn.Softmax2d()}
    call(g, layers[name](), x)


@op("nn.LSTM", "nn.GRU", "nn.RNN", "nn.MultiheadAttention", "nn.TransformerEncoderLayer")
def sequence(g: GrowingModule, name: str) -> None:
    x = g.take("F", shape=(g.pick(1, 2), g.pick(3, 4), 6))
    both = g.coin(0.3)
    match name:
        case "nn.MultiheadAttention":
            layer: nn.Module = nn.MultiheadAttention(6, g.pick(1, 2, 3), batch_first=True)
            call(g, layer, x, f", {x}, {x}", "[0]")
        case "nn.TransformerEncoderLayer":
            call(g, nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True), x)
        case _:
            layer = getattr(nn, name[3:])(6, g.pick(2, 5), bidirectional=both, batch_first=True,
                                          num_layers=g.pick(1, 1, 2))
            call(g, layer, x, "", "[0]")


@op("matmul", "linear", "einsum", "bmm", "outer", "addmm", "conv", "attention", "cdist", "kron",
    "tensordot", "cosine_similarity", "dot", "baddbmm", "interpolate", "grid_sample")
def product(g: GrowingModule, name: str) -> None:
    x = g.take("f", 2, least=1)
    *_, m, k = g.sizes(x)
    y, w = g.like(x), g.like(x, (k, g.pick(1, 3, 8)))
    text = {
        "matmul": f"{x} @ {w}", "linear": f"F.linear({x}, {w}.T)",
        "einsum": f"torch.einsum('{g.pick('...ij,jk->...ik', '...ij,jk->k', '...ij,jk->...ijk')}', "
                  f"{x}, {w})",
        "bmm": f"torch.bmm({x}.reshape(-1, {m}, {k}), {y}.reshape(-1, {m}, {k}).mT)",
        "outer": f"torch.outer({x}.flatten()[:5], {w}.flatten()[:4])",
        "addmm": f"torch.addmm({w}[:1], {x}.reshape(-1, {k}), {w}, beta=0.5, alpha=2)",
        "conv": f"F.conv1d({x}.reshape(1, -1, {k}), {x}.reshape(1, -1, {k})[..., :1])",
        "attention": f"F.scaled_dot_product_attention({x}, {y}, {x}, is_causal={g.coin()})",
        "cdist": f"torch.cdist({x}, {y} + 3)", "kron": f"torch.kron({x}[..., :2], {w}[:2])",
        "tensordot": f"torch.tensordot({x}, {w}, 1)",
        "cosine_similarity": f"F.cosine_similarity({x}, {y}, dim=-1)",
        "dot": f"torch.dot({x}.flatten(), {y}.flatten())",
        "baddbmm": f"torch.baddbmm({x}.reshape(-1, {m}, {k})[:, :, :1], {x}.reshape(-1, {m}, {k}), "
                   f"{y}.reshape(-1, {m}, {k}).mT[..., :1])",
        "interpolate": f"F.interpolate({x}.reshape(1, -1, {k}), size={g.pick(3, 7)}, "
                       f"mode='{g.pick('linear', 'nearest', 'nearest-exact')}')",
        "grid_sample": f"F.grid_sample({x}.reshape(1, 1, -1, {k}), torch.tanh({w}[:, :1] * "
                       f"torch.ones(1, 1, {k}, 2, dtype={g.values[x].dtype})), "
                       "align_corners=False)"}[name]
    g.add(text)


@op("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "kl_div",
    "binary_cross_entropy_with_logits", "gaussian_nll_loss", "margin_ranking_loss",
    "soft_margin_loss", "poisson_nll_loss", "cosine_embedding_loss", "triplet_margin_loss")
def loss(g: GrowingModule, name: str) -> None:
    x = g.take("f", 2, 2, least=1)
    n, c = g.sizes(x)
    y = g.like(x)
    how = f", reduction='{g.pick('none', 'mean', 'sum')}'"
    if name in ("cross_entropy", "nll_loss"):
        at = g.given(g.tensor("l", (n,)) % c)
        first = f"{x}.log_softmax(1)" if name == "nll_loss" else x
        g.add(f"F.{name}({first}, {at}{how})")
        return
    text = {
        "kl_div": f"F.kl_div({x}.log_softmax(1), {y}.softmax(1){how})",
        "binary_cross_entropy_with_logits": f"F.{name}({x}, {y}.sigmoid(){how})",
        "gaussian_nll_loss": f"F.{name}({x}, {y}, {x}.abs() + 0.5{how})",
        "margin_ranking_loss": f"F.{name}({x}, {y}, {y}.sign(), 0.3{how})",
        "cosine_embedding_loss": f"F.{name}({x}, {y}, {y}[:, 0].sign(){how})",
        "soft_margin_loss": f"F.{name}({x}, {y}.sign(){how})",
        "triplet_margin_loss": f"F.{name}({x}, {y}, {x}.flip(0) + 1{how})"}.get(
            name, f"F.{name}({x}, {y}{how})")
    g.add(text)
