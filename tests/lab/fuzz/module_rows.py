"""What lines a random torch module is made of: element by element, moves, sums, control, writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tests.lab.fuzz.growing import Unfit
from tests.lab.fuzz.modules import GrowingModule
from tests.lab.fuzz.table import kinds

Grow = Callable[[GrowingModule], Any]
ROWS: dict[str, Grow] = {}


def op(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function under the names; it gets the name as its second argument."""
    def registered(grow: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            ROWS[name] = partial(grow, name=name)
        return grow
    return registered


UNARY = {
    **kinds("exp log sin cos tan tanh sigmoid sqrt rsqrt erf erfc expm1 log1p log2 log10 asin acos "
            "atan sinh cosh asinh acosh atanh reciprocal floor ceil trunc frac exp2 sinc "
            "nan_to_num deg2rad lgamma digamma isnan isinf isfinite round", "f"),
    **kinds("abs neg sign square relu positive sgn", "n"), "logical_not": "a", "bitwise_not": "i"}


@op(*UNARY)
def unary(g: GrowingModule, name: str) -> None:
    x = g.take(UNARY[name])
    g.add(f"torch.{name}({x})")


ACTIVATIONS = ("relu", "relu6", "gelu", "silu", "mish", "elu", "selu", "celu", "leaky_relu",
               "softplus", "softsign", "tanhshrink", "hardtanh", "hardswish", "hardsigmoid",
               "logsigmoid", "softshrink", "hardshrink")


@op(*(f"F.{a}" for a in ACTIVATIONS))
def activation(g: GrowingModule, name: str) -> None:
    x = g.take("f")
    more = {"F.gelu": ", approximate='tanh'", "F.elu": ", alpha=0.7", "F.celu": ", alpha=1.3",
            "F.leaky_relu": ", 0.2", "F.softplus": ", beta=2.0"}.get(name, "") if g.coin() else ""
    g.add(f"{name}({x}{more})")


BINARY = {
    **kinds("add sub mul maximum minimum eq ne lt le gt ge", "n"),
    **kinds("div atan2 hypot logaddexp copysign fmod remainder xlogy fmax fmin heaviside", "f"),
    **kinds("logical_and logical_or logical_xor", "b"),
    **kinds("bitwise_and bitwise_or bitwise_xor", "i")}


@op(*BINARY)
def binary(g: GrowingModule, name: str) -> None:
    x = g.take(BINARY[name])
    y = g.along(x)
    if g.coin(0.2):
        x, y = y, x
    g.add(f"torch.{name}({x}, {y})")


@op("scalar")
def scalar(g: GrowingModule, name: str) -> None:
    """A number on either side, whose kind may promote the tensor."""
    x, n = g.take("a"), g.pick("2", "0.5", "-1", "3.0", "True")
    g.add(g.pick(f"{x} + {n}", f"{n} - {x}", f"{x} * {n}", f"{x} / 2", f"{x} // 3", f"{x} % 5",
                 f"{n} / ({x} + 20)", f"{x} ** 2", f"2 ** {x}", f"{x} > {n}"))


@op("promoted")
def promoted(g: GrowingModule, name: str) -> None:
    """Two tensors of any two dtypes."""
    x = g.take("a")
    y = g.fresh("a", g.sizes(x))
    g.add(g.pick(f"{x} + {y}", f"{x} * {y}", f"{x} / {y}", f"torch.where({x} > 0, {x}, {y})",
                 f"torch.maximum({x}, {y})"))


@op("to", "clamp", "where", "masked_fill", "lerp", "addcmul", "addcdiv", "pow", "threshold", "glu",
    "shift", "int_div")
def mixed(g: GrowingModule, name: str) -> None:
    x = g.take({"to": "a", "shift": "l", "int_div": "l", "clamp": "n", "where": "n"}.get(name, "f"))
    y = g.along(x)
    if name == "to":
        safe = g.values[x].is_floating_point()
        kind = g.pick("float32", "float64", "float16", "bfloat16", "bool", *(
            () if safe else ("int8", "int32", "int64", "uint8")))
        kind = "float64" if g.wide else kind
        g.add(f"{x}.to(torch.{kind})" if g.coin() else f"{x}.type(torch.{kind})")
        return
    texts = {
        "clamp": g.pick(f"{x}.clamp(-1, 2)", f"{x}.clamp(min=0)", f"{x}.clamp_max(1)"),
        "where": f"torch.where({x} > 0, {x}, {y})",
        "masked_fill": f"{x}.masked_fill({x} < 0, -1.5)", "lerp": f"torch.lerp({x}, {y}, 0.3)",
        "addcmul": f"torch.addcmul({x}, {y}, {x}, value=0.5)",
        "addcdiv": f"torch.addcdiv({x}, {y}, {x}.abs() + 1)",
        "pow": g.pick(f"{x}.abs().pow({y})", f"{x}.pow(3)", f"{x}.abs() ** 0.5"),
        "threshold": f"F.threshold({x}, 0.1, -2.0)", "glu": f"F.glu({x}, -1)",
        "shift": g.pick(f"({x}.abs() % 64) << 2", f"{x} >> 1"),
        "int_div": f"torch.div({x}, 3, rounding_mode='{g.pick('floor', 'trunc')}')"}
    g.add(texts[name])


# ---- moves and views ---------------------------------------------------------------------------

@op("transpose", "permute", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "expand",
    "narrow", "select", "slice", "chunk", "split", "unbind", "flip", "roll", "movedim", "tile",
    "repeat", "repeat_interleave", "tril", "diagonal", "unfold", "as_strided", "mT", "rot90",
    "view_as", "diag_embed", "newaxis", "ellipsis")
def move(g: GrowingModule, name: str) -> None:
    x = g.take("a", 1)
    shape, rank = g.sizes(x), len(g.sizes(x))
    a, b = g.axis(x), g.axis(x)
    n = shape[a]
    order = g.rng.sample(range(rank), rank)
    first = g.rng.randrange(max(n, 1))
    g.add({
        "transpose": f"{x}.transpose({a}, {b})", "permute": f"{x}.permute({order})",
        "reshape": f"{x}.reshape({g.pick((-1,), (shape[0], -1), (-1, shape[-1]), shape[::-1])})",
        "flatten": f"{x}.flatten({g.rng.randrange(rank)})",
        "unflatten": f"{x}.unflatten({a}, ({g.pick(1, 2, -1)}, {g.pick(-1, n)}))",
        "squeeze": g.pick(f"{x}.squeeze()", f"{x}.squeeze({a})"),
        "unsqueeze": f"{x}.unsqueeze({a})", "expand": f"{x}[None].expand(2, {'-1, ' * rank})",
        "narrow": f"{x}.narrow({a}, {first}, {max(1, n - first - 1)})",
        "select": f"{x}.select({a}, {-1 if g.coin() else first})",
        "slice": f"{x}[{first}::{g.pick(1, 2)}]" if a % rank == 0 else f"{x}[..., -2:]",
        "chunk": f"{x}.chunk(2, {a})[{g.pick(0, -1)}]",
        "split": f"torch.cat(torch.split({x}, 2, {a})[::-1], {a})",
        "unbind": f"torch.stack({x}.unbind({a})[::-1], {b})", "flip": f"{x}.flip({a})",
        "roll": f"{x}.roll({g.pick(1, -2)}, {a})", "movedim": f"{x}.movedim({a}, {b})",
        "tile": f"{x}.tile(({g.pick('2,', '1, 2')}))",
        "repeat": f"{x}.repeat({'1, ' * (rank - 1)}2)",
        "repeat_interleave": f"{x}.repeat_interleave(2, {a})",
        "tril": f"{x}.{g.pick('tril', 'triu')}({g.pick(0, 1, -1)})",
        "diagonal": f"{x}.diagonal({g.pick(0, 1)}, -2, -1)",
        "unfold": f"{x}.unfold({a}, {g.pick(1, 2)}, {g.pick(1, 2)})",
        "as_strided": f"{x}.contiguous().as_strided(({shape[0]},), ({g.pick(0, 1)},))",
        "mT": f"{x}.mT", "rot90": f"torch.rot90({x}, 1, (-2, -1))",
        "view_as": f"{x}.contiguous().view(-1).view_as({x})",
        "diag_embed": f"torch.diag_embed({x})", "newaxis": f"{x}[:, None]",
        "ellipsis": f"{x}[..., 0:1]"}[name])


@op("cat", "stack", "pad", "gather", "index_select", "take_along_dim", "index", "index_mask",
    "scatter", "scatter_add", "index_add", "index_put", "masked_where", "one_hot", "embedding",
    "meshgrid", "scatter_reduce", "index_fill")
def indexed(g: GrowingModule, name: str) -> None:
    x = g.take("n", 1, least=1)
    shape, rank, a = g.sizes(x), len(g.sizes(x)), g.axis(x)
    n, y = shape[a], g.like(x)
    whole = g.given(torch.randint(0, n, shape, generator=_seeded(g)))
    few = g.given(torch.randint(-n if name == "index" else 0, n, (3,), generator=_seeded(g)))
    dots = ":, " * (a % rank)
    part = [3 if i == a % rank else s for i, s in enumerate(shape)]
    rows = g.like(x, part)
    how = g.pick("sum", "amax", "amin", "prod")
    text = {
        "cat": f"torch.cat([{x}, {y}], {a})", "stack": f"torch.stack([{x}, {y}], {a})",
        "pad": f"F.pad({x}, ({g.pick(0, 1)}, {g.pick(2, -1)}), value=0.5)",
        "gather": f"{x}.gather({a}, {whole})", "index_select": f"{x}.index_select({a}, {few})",
        "take_along_dim": f"torch.take_along_dim({x}, {whole}, {a})",
        "index": f"{x}[{dots}{few}]", "index_mask": f"{x}.masked_fill({y} > 0, 0)",
        "scatter": f"{x}.scatter({a}, {whole}, 2)",
        "scatter_add": f"{x}.scatter_add({a}, {whole}, {y})",
        "index_add": f"{x}.index_add({a}, {few}, {rows})",
        "index_put": f"{x}.index_put(({few} % {shape[0]},), {x}.flatten()[0], accumulate=True)",
        "masked_where": f"torch.where({y} > {x}, {x}, torch.zeros_like({y}))",
        "one_hot": f"F.one_hot({whole}, {n + 1})",
        "embedding": f"F.embedding({whole} % {shape[0]}, {x}.reshape({shape[0]}, -1))",
        "meshgrid": f"torch.meshgrid({x}.flatten()[:3], {y}.flatten()[:2], indexing='ij')[1]",
        "scatter_reduce": f"{x}.scatter_reduce({a}, {whole}, {y}, '{how}')",
        "index_fill": f"{x}.index_fill({a}, {few}, -1)"}[name]
    g.add(text)


def _seeded(g: GrowingModule) -> torch.Generator:
    return torch.Generator().manual_seed(g.rng.getrandbits(31))


# ---- sums, orders ------------------------------------------------------------------------------

@op("sum", "mean", "amax", "amin", "prod", "var", "std", "norm", "logsumexp", "argmax", "argmin",
    "any", "all", "cumsum", "cumprod", "softmax", "log_softmax", "sort", "topk", "max_dim",
    "median", "cummax", "normalize", "count_nonzero", "var_mean", "logcumsumexp", "diff",
    "kthvalue", "nansum", "softmin", "std_mean", "aminmax")
def along(g: GrowingModule, name: str) -> None:
    """Sums, extremes and orders along an axis."""
    plain = ("sum", "amax", "amin", "prod", "argmax", "argmin", "any", "all", "cumsum", "sort",
             "topk", "max_dim", "count_nonzero", "diff", "aminmax")
    x = g.take("n" if name in plain else "f", 1, least=1)
    a, keep, n = g.axis(x), g.pick("", ", keepdim=True"), g.sizes(x)
    k = g.rng.randint(1, n[a])
    special = {
        "norm": f"torch.linalg.vector_norm({x}, {g.pick(1, 2, 3)}, {a}{keep})",
        "cumsum": f"{x}.cumsum({a})", "cumprod": f"{x}.cumprod({a})",
        "softmax": f"{x}.softmax({a})", "log_softmax": f"F.log_softmax({x}, {a})",
        "softmin": f"F.softmin({x}, {a})", "sort": f"{x}.sort(dim={a}, stable=True).values",
        "topk": f"{x}.topk({k}, {a}).values", "max_dim": f"{x}.max({a}{keep}).values",
        "median": f"{x}.median({a}{keep}).values", "cummax": f"{x}.cummax({a}).values",
        "normalize": f"F.normalize({x}, dim={a})", "var_mean": f"torch.var_mean({x}, {a})[0]",
        "std_mean": f"torch.std_mean({x}, {a}, unbiased=False)[1]",
        "var": f"{x}.var({a}, unbiased=False{keep})", "std": f"({x} * 1.5).std({a}{keep})",
        "logcumsumexp": f"{x}.logcumsumexp({a})", "diff": f"{x}.diff(dim={a})",
        "kthvalue": f"{x}.kthvalue({k}, {a}).values",
        "count_nonzero": f"torch.count_nonzero({x}, {a})",
        "aminmax": f"torch.aminmax({x}, dim={a}).max"}
    whole = name in ("sum", "mean", "amax", "prod", "any", "all") and g.coin(0.2)
    g.add(special.get(name, f"{x}.{name}()" if whole else f"{x}.{name}({a}{keep})"))


# ---- control, writes ---------------------------------------------------------------------------

@op("by_shape", "loop_rows", "loop_count", "view_sizes", "numel", "size_arithmetic")
def by_shape(g: GrowingModule, name: str) -> None:
    """Python control by shapes, and sizes as numbers."""
    x = g.take("f", 1, 3, least=1)
    g.add({
        "by_shape": f"torch.relu({x}) if {x}.shape[0] > 3 else torch.tanh({x})",
        "loop_rows": f"OUT = {x}[0]\nfor row in {x}:\n    OUT = OUT * 0.5 + row",
        "loop_count": f"OUT = {x}\nfor i in range({x}.shape[-1]):\n"
                      f"    OUT = OUT + {x}[..., i:i + 1] * i",
        "view_sizes": f"{x}.reshape({x}.shape[0], -1) * {x}.shape[0]",
        "numel": f"{x} * ({x}.numel() ** -0.5)",
        "size_arithmetic": f"torch.zeros({x}.shape[0] + 1, {x}.shape[-1] * 2, dtype={x}.dtype) "
                           f"+ {x}.sum()"}[name])


@op("write_slice", "write_view", "write_masked", "write_index", "write_where", "add_", "mul_",
    "relu_", "fill_", "copy_", "zero_", "alias", "clamp_", "write_step")
def written(g: GrowingModule, name: str) -> None:
    """Writes in place, to a value and through views of it."""
    x = g.take("f", 1, least=1)
    y, a = g.like(x), g.axis(x)
    text = "OUT = {x}.clone()\n" + {
        "write_slice": "OUT[..., 0] = 1.5", "write_view": "OUT.transpose(0, -1)[0] = -1.0",
        "write_masked": "OUT[{x} > 0] = 0.25", "write_index": "OUT[0] += {y}[-1]",
        "write_where": "OUT[...] = torch.where({y} > 0, OUT, {y})",
        "add_": "OUT.add_({y}, alpha=2)",
        "mul_": "OUT.select({a}, 0).mul_(3)", "relu_": "F.relu(OUT, inplace=True)",
        "fill_": "OUT.narrow({a}, 0, 1).fill_(0.5)", "copy_": "OUT[:1].copy_({y}[:1] * 2)",
        "zero_": "OUT.diagonal().zero_() if OUT.ndim > 1 else OUT.zero_()",
        "alias": "seen = OUT.view(-1)\nOUT.mul_(2)\nOUT = OUT + seen.sum()",
        "clamp_": "OUT.unsqueeze(0).clamp_(-0.5, 0.5)",
        "write_step": "OUT[..., ::2] = {y}[..., ::2]",
    }[name]
    g.add(text.replace("{x}", x).replace("{y}", y).replace("{a}", str(a)))


@op("arange", "full", "eye", "linspace", "zeros_like")
def made(g: GrowingModule, name: str) -> None:
    """Tensors from nothing."""
    x = g.take("f", 1)
    kind = g.values[x].dtype
    n = g.sizes(x)[-1]
    if not n:
        raise Unfit("no elements")
    g.add({"arange": f"{x} + torch.arange({n}, dtype={kind})",
           "full": f"{x} * torch.full(({n},), 0.25, dtype={kind})",
           "eye": f"{x}.unsqueeze(-1) * torch.eye({n}, dtype={kind})",
           "linspace": f"{x} - torch.linspace(0, 1, {n}, dtype={kind})",
           "zeros_like": f"torch.ones_like({x}) - torch.zeros_like({x})"}[name])
