"""Random torch modules: a forward that grows line by line, and runs as it grows.

Each line is Python text that makes one value, so torch itself says what fits: what raises is taken
back. The finished text is the module's forward, and what a person reads where it goes wrong.
"""

from __future__ import annotations

import linecache
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tests.lab.fuzz.growing import SIZES, Seeded, Unfit

MOST = 4096  # elements of a value that further lines read
KINDS: dict[str, tuple[torch.dtype, ...]] = {
    "f": (torch.float32,) * 6 + (torch.float64,), "F": (torch.float32,),
    "n": (torch.float32,) * 5 + (torch.float64, torch.int64, torch.int64, torch.int32),
    "i": (torch.int64, torch.int64, torch.int32), "l": (torch.int64,), "b": (torch.bool,),
    "a": (torch.float32,) * 4 + (torch.float64, torch.int64, torch.int32, torch.bool, torch.uint8,
                                 torch.float16, torch.bfloat16, torch.int8, torch.int16)}


@dataclass(frozen=True)
class Line:
    """One statement; `op` is the row that it comes from."""

    op: str
    makes: str
    text: str
    reads: tuple[str, ...]


@dataclass
class ModuleCase(Seeded):
    """A module, the values of all its lines, and how it is captured.

    `names` are the arguments of forward; `inputs` may have states besides.
    """

    names: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
    values: dict[str, torch.Tensor] = field(default_factory=dict)
    layers: dict[str, nn.Module] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    capture: str = "export"
    training: bool = False
    dynamic: int | None = None  # the size that is open

    def module(self, lines: Sequence[Line] | None = None, inputs: Sequence[str] | None = None,
               outputs: Sequence[str] | None = None) -> nn.Module:
        """The module, or one of some of its lines, inputs and outputs."""
        body = self.source(self.lines if lines is None else lines,
                           self.names if inputs is None else inputs,
                           self.outputs if outputs is None else outputs)
        name = f"<fuzz {self.seed} {hash(body)}>"
        linecache.cache[name] = (len(body), None, body.splitlines(True), name)
        space: dict[str, Any] = {"torch": torch, "F": functional}
        exec(compile(body, name, "exec"), space)
        made: nn.Module = type("Model", (nn.Module,), {"forward": space["forward"]})()
        for key, layer in self.layers.items():
            if f"self.{key}(" in body:
                setattr(made, key, layer)
        return made.train(self.training)

    @staticmethod
    def source(lines: Sequence[Line], inputs: Sequence[str], outputs: Sequence[str]) -> str:
        """The text of forward."""
        body = [f"    {line}" for one in lines for line in one.text.splitlines()]
        return "\n".join([f"def forward(self, {', '.join(inputs)}):", *body,
                          f"    return {', '.join(outputs)},", ""])

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The inputs of a call, new ones each time, since a module may write to them."""
        return tuple(self.values[n].clone() for n in self.names)


class Holder:
    """What `self` is while a module grows."""


@dataclass
class GrowingModule:
    """One module. With `wide` all floats are float64, as gradients are compared."""

    rng: random.Random
    training: bool = False
    special: bool = False
    wide: bool = False
    lines: list[Line] = field(default_factory=list)
    values: dict[str, torch.Tensor] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    layers: dict[str, nn.Module] = field(default_factory=dict)
    holder: Holder = field(default_factory=Holder)
    op: str = ""

    def name(self) -> str:
        """A name that no other value has."""
        return f"v{len(self.values)}"

    def coin(self, chance: float = 0.5) -> bool:
        """True by that chance."""
        return self.rng.random() < chance

    def pick(self, *of: Any) -> Any:
        """One of the arguments."""
        return self.rng.choice(of)

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        """A small shape."""
        return tuple(self.pick(1, 2, 3, 3, 4, 5, 7, 8) for _ in range(self.rng.randint(low, high)))

    def dtypes(self, kinds: str) -> Sequence[torch.dtype]:
        """What a value of these kinds may be, the usual ones several times."""
        return KINDS[kinds]

    def tensor(self, kinds: str, shape: Sequence[int]) -> torch.Tensor:
        """Random numbers of one of SIZES; in some modules the special ones as well."""
        dtype = self.pick(*self.dtypes(kinds))
        rng = np.random.default_rng(self.rng.getrandbits(32))
        if dtype is torch.bool:
            return torch.from_numpy(np.asarray(rng.random(shape) < 0.5))
        if not dtype.is_floating_point:
            return torch.from_numpy(np.asarray(rng.integers(
                0 if dtype is torch.uint8 else -9, 10, shape))).to(dtype)
        found = np.asarray(rng.standard_normal(shape) * rng.choice(SIZES))
        if self.special and found.size and rng.random() < 0.5:
            found.reshape(-1)[rng.integers(0, found.size)] = rng.choice([np.nan, np.inf, -np.inf])
        return torch.from_numpy(found).to(torch.float64 if self.wide else dtype)

    def fresh(self, kinds: str, shape: Sequence[int]) -> str:
        """A new input."""
        return self.given(self.tensor(kinds, shape))

    def given(self, value: torch.Tensor) -> str:
        """A new input with this value."""
        name = self.name()
        self.values[name] = value
        self.inputs.append(name)
        return name

    def take(self, kinds: str, low: int = 0, high: int = 4, shape: Sequence[int] | None = None,
             least: int = 0) -> str:
        """A value of one of these dtypes, ranks and least sizes, or a new input."""
        allowed = {torch.float64} if self.wide and kinds in ("f", "F") else set(self.dtypes(kinds))
        fits = [n for n, v in self.values.items() if v.dtype in allowed and v.numel() <= MOST
                and low <= v.ndim <= high and (shape is None or tuple(v.shape) == tuple(shape))
                and all(s >= least for s in v.shape)]
        if fits and self.coin(0.8):
            return str(self.pick(*fits[-6:]))
        wanted = self.shape(low, high) if shape is None else shape
        return self.fresh(kinds, [max(s, least) for s in wanted])

    def sizes(self, x: str) -> tuple[int, ...]:
        """The shape of a value."""
        return tuple(self.values[x].shape)

    def like(self, x: str, shape: Sequence[int] | None = None) -> str:
        """A value of the dtype of `x` and its shape, or the given one."""
        wanted = self.sizes(x) if shape is None else tuple(shape)
        fits = [n for n, v in self.values.items() if v.dtype == self.values[x].dtype
                and tuple(v.shape) == wanted]
        if fits and self.coin(0.7):
            return str(self.pick(*fits[-6:]))
        kind = "f" if self.values[x].is_floating_point() else "b" if (
            self.values[x].dtype is torch.bool) else "i"
        return self.given(self.tensor(kind, wanted).to(self.values[x].dtype))

    def along(self, x: str) -> str:
        """A value that broadcasts with `x`."""
        shape = self.sizes(x)[self.pick(0, 0, 0, 1, 2):]
        return self.like(x, [n if self.coin(0.7) else 1 for n in shape])

    def axis(self, x: str) -> int:
        """One of the axes of `x`, counted from either end."""
        rank = len(self.sizes(x))
        if not rank:
            raise Unfit("no axis")
        return self.rng.randrange(-rank, rank)

    def layer(self, layer: nn.Module) -> str:
        """`self.l0`, with random parameters of the generator's own."""
        name = f"l{len(self.layers)}"
        rng = np.random.default_rng(self.rng.getrandbits(32))
        for p in layer.parameters():
            p.data = torch.from_numpy(np.asarray(rng.standard_normal(tuple(p.shape)) * 0.5)).to(
                p.dtype)
        self.layers[name] = layer.to(torch.float64) if self.wide else layer
        setattr(self.holder, name, layer.train(self.training))
        return f"self.{name}"

    def add(self, text: str) -> str:
        """Append a line: an expression, or statements in which OUT is the value that they
        make.

        Raises Unfit where torch refuses, where no tensor comes out, or a large one.
        """
        name = self.name()
        reads = tuple(dict.fromkeys(re.findall(r"\bv\d+\b", text)))
        text = text.replace("OUT", name) if "OUT" in text else f"{name} = {text}"
        space = {"torch": torch, "F": functional, "self": self.holder,
                 **{r: self.values[r].clone() for r in reads}}
        try:
            exec(text, space)
        except Exception as error:  # whatever torch raises
            raise Unfit(f"{text}: {error}") from error
        value = space[name]
        if not isinstance(value, torch.Tensor) or value.is_complex() or value.numel() > 4 * MOST:
            raise Unfit(f"{text}: no fit result")
        self.values[name] = value.detach()
        self.lines.append(Line(self.op, name, text, reads))
        return name
