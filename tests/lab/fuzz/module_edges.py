"""What random torch modules of the edges are made of: whole numbers at the limits of their types,
views, writes through views, casts, and comparisons of mixed types.

Lines that divide, shift or cast bring their operand into the range that torch defines: what it
leaves to the processor is no oracle (docs/numerics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from graphtool.dtypes import BY_NAME
from tests import edges
from tests.lab.fuzz import module_rows
from tests.lab.fuzz.growing import Unfit
from tests.lab.fuzz.modules import GrowingModule

INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
DTYPES = {"i": INTEGERS, "b": (torch.bool,), "f": FLOATS, "F": (torch.float32,),
          "l": (torch.int64,), "n": (*INTEGERS, *INTEGERS, *FLOATS),
          "a": (*INTEGERS, *INTEGERS, *FLOATS, torch.bool, torch.bool)}
NAMES = ("int8", "int16", "int32", "int64", "uint8", "bool", "float16", "bfloat16", "float32",
         "float64")
NUMBERS = ("-1", "0", "1", "2", "7", "127", "128", "200", "255", "300", "-129", "-128", "40000",
           "-70000", "2**31", "-2**40", "0.5", "-1.5", "300.7", "True")
# views of a value OUT; what torch refuses for its rank is taken back
VIEWS = ("OUT[1:]", "OUT[:-1]", "OUT[::2]", "OUT[..., ::2]", "OUT[..., 1::3]", "OUT[..., -1]",
         "OUT[0]", "OUT.t()", "OUT.mT", "OUT.transpose(0, -1)", "OUT.view(-1)[1:]",
         "OUT.view(-1)[::3]", "OUT.flatten()", "OUT.reshape(-1)[:-1]", "OUT.diagonal()",
         "OUT.diagonal(1)", "OUT[None]", "OUT.unsqueeze(-1)", "OUT.squeeze()", "OUT.unbind(0)[-1]",
         "OUT.chunk(2, -1)[-1]", "OUT.split(2, 0)[0]", "OUT.narrow(-1, 1, 1)", "OUT[:, 1:].t()",
         "OUT[1:, :-1]", "OUT.select(-1, 0)", "OUT[..., None, :]", "OUT[1::2].transpose(0, -1)",
         "OUT.as_strided((2, 2), (1, 2))", "OUT.as_strided((3,), (2,), 1)", "OUT.view_as(OUT)",
         "OUT.permute(*range(OUT.ndim)[::-1])", "OUT.movedim(0, -1)", "OUT.detach()[-2:]",
         "OUT.unflatten(0, (-1, 1))[0]", "OUT.swapaxes(0, 1)[:2]", "OUT[...]")
# writes to a view V, with a value {y} of its shape or one that broadcasts
WRITES = ("V.add_({y})", "V.sub_({y}, alpha=2)", "V.mul_({y})", "V.mul_(3)", "V.neg_()",
          "V.add_(1)", "V.fill_(1)", "V.zero_()", "V.copy_({y})", "V.abs_()", "V.square_()",
          "V.clamp_(-1, 2)", "V.clamp_(max=3)", "V.masked_fill_({y} > 0, 1)", "V.fill_({y}.sum())",
          "V[...] = {y}", "V[...] = 2", "V += {y}", "V -= 1", "V *= {y}", "V |= {y}", "V &= {y}",
          "V ^= {y}", "V.bitwise_not_()", "V.remainder_(5)", "V.floor_divide_(3)",
          "V.div_(3, rounding_mode='trunc')", "V.fmod_(7)", "V.sign_()", "V.eq_({y})", "V.lt_({y})",
          "V.logical_not_()", "V.relu_()", "V.copy_({y} > 0)", "V.copy_(V.flip(0))",
          "V.index_fill_(0, torch.tensor([0]), 3)", "V.put_(torch.tensor([0]), {y}.flatten()[:1])",
          "V[{y} > 0] = 1", "V[torch.tensor([0, -1])] = 4", "V[torch.tensor([0, 0])] += 1",
          "V.index_put_((torch.tensor([0, 0]),), {y}.flatten()[0], accumulate=True)",
          "V.index_add_(0, torch.tensor([0, 0]), {y}[:1].repeat(2, *[1] * ({y}.ndim - 1)))",
          "V.scatter_(0, torch.zeros_like({y}, dtype=torch.int64), {y})",
          "V.scatter_add_(0, torch.zeros_like({y}, dtype=torch.int64), {y})",
          "V.masked_scatter_({y} > 0, {y})", "V.cumsum_(0)", "V.cumprod_(-1)", "V.tril_()",
          "V.triu_(1)", "V.transpose_(0, -1)", "V.unsqueeze_(0)", "V.swap_dims_(0, 1)",
          "V.where({y} > 0, 2)", "V.lerp_({y}, 0.5)", "V.addcmul_({y}, {y})", "V <<= 1", "V >>= 1")
ARITHMETIC = """{x} + {y}; {x} - {y}; {x} * {y}; -{x}; {x}.abs(); {x}.sign(); {x}.square()
{x} // {d}; {x} % {d}; torch.fmod({x}, {d}); torch.div({x}, {d}, rounding_mode='trunc')
{x} / {d}; ~{x}; torch.div({x}, {d}, rounding_mode='floor'); torch.remainder({x}, -{d})
{x} // -{d}; {x} ** 2; {x} ** 3; {x} & {y}; {x} | {y}; {x} ^ {y}; {x} << {s}; {x} >> {s}
2 ** {s}; torch.maximum({x}, {y}); torch.minimum({x}, {y}); torch.clamp({x}, {y}, {y})
torch.add({x}, {y}, alpha=3); torch.sub({x}, {y}, alpha=-2); torch.rsub({x}, {y})
torch.addcmul({x}, {y}, {y}, value=2); torch.bitwise_left_shift({x}, {s})
torch.heaviside({x}, {y}); 5 // {d}; 100 % {d}; 1000 - {x}
torch.outer({x}.flatten()[:4], {y}.flatten()[:3]); {x}.diff(); torch.float_power({x}, 2)
torch.bitwise_right_shift({x}, {s}); {x}.clamp(min=0); {x}.relu()
{x}.reshape(1, -1) @ {y}.flatten(); torch.gcd({x} >> 1, {y} >> 1); {x}.logical_xor({y})
{x}.positive(); torch.true_divide({x}, {d})"""
REDUCTIONS = """{x}.sum({a}); {x}.prod({a}); {x}.amax({a}); {x}.amin({a}); {x}.cumsum({a})
{x}.cumprod({a}); {x}.sum({a}, dtype={x}.dtype); {x}.prod({a}, dtype={x}.dtype); {x}.sum()
{x}.prod(); {x}.argmax({a}); {x}.argmin({a}); {x}.sort({a}).values
{x}.argsort({a}, stable=True); {x}.cummax({a}).values; {x}.any({a}); {x}.all({a})
{x}.cummin({a}).indices; torch.count_nonzero({x}, {a}); {x}.topk(1, {a}).values
{x}.max({a}).indices; {x}.median({a}).values; {x}.kthvalue(1, {a}).values
torch.aminmax({x}, dim={a}).min; {x}.flip({a}); {x}.mean({a}, dtype=torch.float64)
{x}.to(torch.bool).sum({a}); {x}.logcumsumexp({a})"""
MIXED = """{x} + {z}; {x} - {z}; {x} * {z}; {x} == {z}; {x} != {z}; {x} < {z}; {x} <= {z}
{x} > {z}; {x} >= {z}; torch.where({x} > 0, {x}, {z}); torch.where({z} > {x}, {z}, {x})
torch.maximum({x}, {z}); torch.minimum({x}, {z}); torch.where({x} != {z}, {x}, {n})
torch.cat([{x}, {z}], {a}); torch.stack([{x}, {z}]); torch.add({x}, {z}, alpha=2)
{x}.masked_fill({z} > 0, 1); {z}.type_as({x} > 0); torch.isin({x}, {z})
torch.bucketize({x}, {z}.flatten().sort()[0]); {x} / ({z} * 0 + 3); torch.logical_and({x}, {z})
torch.clamp({x}, {z}, {z}); {x}.index_fill(0, {k}, 1); torch.where({x} > 0, {n}, {z})
torch.where({z} == 0, 0, {x}); torch.addcmul({x}, {x}, {x}) + {z}"""
WITH_A_NUMBER = """{x} + {n}; {x} - {n}; {n} - {x}; {x} * {n}; {x} < {n}; {x} >= {n}; {x} == {n}
{n} != {x}; {x} / {n}; {x}.clamp({n}, {n}); {x}.clamp(min={n}); {x}.clamp(max={n}); {x} <= {n}
torch.where({x} > 0, {x}, {n}); {x}.masked_fill({x} > 0, {n}); torch.full_like({x}, {n})
{x}.eq({n}).to({x}.dtype); torch.rsub({x}, {n}); torch.maximum({x}, torch.tensor({n}))
{x}.gt({n}); torch.add({x}, {x}, alpha={n}); F.pad({x}, (1, 1), value={n})
{x}.new_full((2,), {n}); torch.full({x}.shape, {n}, dtype={x}.dtype) + {x}; torch.fill({x}, {n})
{x} & {n}; {x} | {n}"""
NARROWED = """{x}.sum({a}, keepdim=True, dtype=torch.uint8); {x}.cumsum({a}, dtype=torch.int16)
{x}.sum({a}, dtype=torch.int8); {x}.prod(dtype=torch.int32); {x}.cumprod({a}, dtype=torch.uint8)"""
PATTERNS = {"narrowed": NARROWED, "arithmetic": ARITHMETIC, "reduced": REDUCTIONS, "mixed": MIXED,
            "number": WITH_A_NUMBER}


class EdgeModule(GrowingModule):
    """A module whose tensors hold the numbers at the edges of their types."""

    def dtypes(self, kinds: str) -> Sequence[torch.dtype]:
        return DTYPES[kinds]

    def tensor(self, kinds: str, shape: Sequence[int]) -> torch.Tensor:
        dtype = self.pick(*DTYPES[kinds])
        rng = np.random.default_rng(self.rng.getrandbits(32))
        if dtype is torch.bool:
            return torch.from_numpy(np.asarray(rng.random(shape) < 0.5))
        row = BY_NAME[str(dtype).removeprefix("torch.")]
        if dtype.is_floating_point:
            known = torch.from_numpy(edges.floats(row).astype(np.float64))
        else:
            known = torch.tensor(edges.integers(row), dtype=dtype)
        return known[torch.from_numpy(np.asarray(rng.integers(0, len(known), shape)))].to(dtype)


def pattern(g: GrowingModule, name: str) -> None:
    """A line of one of the patterns."""
    text = g.pick(*edges.functions(PATTERNS[name]))
    narrow = name == "narrowed" or (name == "arithmetic" and g.coin(0.8))
    x = g.take("i" if narrow else "a", 1, least=1)
    y = g.along(x)
    # a number that a type of 16 bits rounds to 0 or ∞ is so in torch's sums, not in our float32
    numbers = [n for n in NUMBERS if "0000" not in n and "*" not in n] if g.values[x].dtype in (
        torch.float16, torch.bfloat16) else NUMBERS
    bits = torch.iinfo(g.values[x].dtype).bits if not g.values[x].is_floating_point() and (
        g.values[x].dtype is not torch.bool) else 8
    g.add(text.format(
        x=x, y=y, z=g.fresh("a", g.sizes(x)) if "{z}" in text else "", a=g.axis(x),
        d=f"({y} % 5 + 2)", s=f"({y} % {bits})", n=f"({g.pick(*numbers)})",
        k="torch.tensor([0])"))


def cast(g: GrowingModule, name: str) -> None:
    """A cast of any type to any other; floats as far as torch defines it."""
    x, to = g.take("a"), g.pick(*NAMES)
    text = x
    if g.values[x].is_floating_point() and to in ("int32", "int64"):
        text = f"{x}.nan_to_num(0).clamp(-1e9, 1e9)"
    elif g.values[x].is_floating_point() and to in ("int8", "int16", "uint8"):
        text = f"{x}.nan_to_num(0).clamp(-60000, 60000)"
    g.add(g.pick(f"{text}.to(torch.{to})", f"{text}.type(torch.{to})", f"{text}.to(torch.{to}) + 1",
                 f"torch.as_tensor({text}, dtype=torch.{to})",
                 f"torch.empty_like({x}, dtype=torch.{to}).copy_({text})"))


def viewed(g: GrowingModule, name: str) -> None:
    """A view of a view."""
    x = g.take("a", 1)
    view = g.pick(*VIEWS)
    if g.coin():
        view = view.replace("OUT", g.pick(*VIEWS))
    g.add(view.replace("OUT", x))


def written(g: GrowingModule, name: str) -> None:
    """A write through a view: of a copy, or of a value that other lines read as well."""
    x = g.take("a", 1, least=1)
    # elements that may share memory have no order in which they are written
    shared = torch._debug_has_internal_overlap(g.values[x]) != 0
    begin = f"OUT = {x}.clone()" if x in g.inputs or shared or g.coin(0.3) else f"OUT = {x}"
    view = g.pick(*VIEWS)
    if g.coin(0.3):
        view = view.replace("OUT", g.pick(*VIEWS))
    try:
        like = eval(view.replace("OUT", x), {**g.values})
    except Exception as error:  # whatever torch raises
        raise Unfit(view) from error
    if g.coin(0.4):
        other = g.tensor("a", like.shape)
        if other.is_floating_point() and not like.is_floating_point():
            other = other.nan_to_num(0).clamp(-60000, 60000)  # what each integer type defines
        y = g.given(other)
    else:
        y = g.like(x, like.shape)
    lines = [begin, f"V = {view}", g.pick(*WRITES).replace("{y}", y)]
    if g.coin(0.2):
        lines.append(g.pick("OUT = OUT + V.sum()", "OUT = V", "OUT = torch.cat([OUT.flatten(), "
                            "V.flatten()])", "V.add_(OUT.flatten()[0].clone())"))
    elif g.coin(0.2):
        lines.insert(2, f"W = {g.pick(*VIEWS)}")
        lines.append("OUT = OUT.flatten()[0] + W")
    g.add("\n".join(lines))


EDGES: dict[str, Any] = {
    **{name: partial(pattern, name=name) for name in PATTERNS}, "cast": partial(cast, name="cast"),
    "viewed": partial(viewed, name="viewed"), "written": partial(written, name="written"),
    "written twice": partial(written, name="written"),
    **{name: module_rows.ROWS[name] for name in (
        "gather", "index_select", "index", "scatter", "scatter_add", "index_add", "index_put",
        "scatter_reduce", "take_along_dim", "masked_where", "cat", "repeat_interleave", "unfold",
        "roll", "tile", "expand", "as_strided")}}
