"""Sample inputs from specs such as `x:f32[1,3,224,224]`; the same specs give the same numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphtool.dtypes import DType, dtype
from graphtool.errors import UsageError
from graphtool.io.weights import Array

_SPEC = re.compile(r"\s*(?:(?P<name>[^:\[\]]+):)?\s*(?P<type>\w+)\s*\[(?P<dims>[\d,\s]*)\]\s*")
_ELEMENTS = 1 << 31


@dataclass(frozen=True, slots=True)
class Spec:
    """A sample input: its name ("" if none), element type and fixed sizes."""

    name: str
    dtype: DType
    shape: tuple[int, ...]


def read_spec(text: str) -> Spec:
    """Parses `name:type[sizes]`; raises UsageError GT1115 for a text that is no such spec."""
    found = _SPEC.fullmatch(text)
    dims = [d.strip() for d in found["dims"].split(",")] if found else []
    if found is None or (dims != [""] and "" in dims):
        raise UsageError("GT1115", f"cannot read the input {text!r}",
                         hint="NAME:TYPE[SIZES], such as x:f32[1,3,224,224]; a scalar is f32[]; "
                              "--dynamic gives the sizes that stay open")
    shape = tuple(int(d) for d in dims if d)
    if np.prod([float(d) for d in shape]) > _ELEMENTS:
        raise UsageError("GT1115", f"the input {text!r} is too large",
                         hint=f"{_ELEMENTS:,.0f} elements at most")
    return Spec((found["name"] or "").strip(), dtype(found["type"]), shape)


def sample(specs: Sequence[Spec], seed: int = 0) -> list[Array]:
    """Arrays: normal floats, random bools, and integers 0 or 1, which are valid indices."""
    rng = np.random.default_rng(seed)
    return [_array(rng, s) for s in specs]


def _array(rng: np.random.Generator, s: Spec) -> Array:
    if s.dtype.is_float:
        return np.asarray(rng.standard_normal(s.shape)).astype(s.dtype.numpy)
    return np.asarray(rng.integers(0, 2, s.shape)).astype(s.dtype.numpy)
