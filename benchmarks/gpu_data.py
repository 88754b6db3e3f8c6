"""Arrays that need not travel to the machine with the GPU: weights and inputs by a recipe.

A large array of floats is noise with the mean and the spread of the original. Noise is one block of
numbers from a hash, repeated: the same bits on each machine, by numpy alone. Others travel as they
are. A case is one file, NAME.zip: the library, case.json with the recipes, and bytes.
"""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BLOCK = 1_048_573  # a prime number of numbers: rows of a matrix do not repeat each other
SMALL = 1 << 14  # arrays of fewer bytes travel
WIDTHS = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4}
SAMPLES = 4096  # elements of an output that are compared


@dataclass(frozen=True)
class Recipe:
    """How the bytes of an array are had: noise of `count` elements of `dtype`, mean + spread · u
    with u from -1 to 1, from place `phase` of the block; or `raw`, a name in the file of the case.
    Without either, they are zeros."""

    dtype: str
    count: int
    mean: float = 0.0
    spread: float = 0.0
    phase: int = 0
    raw: str = ""


@dataclass(frozen=True)
class Output:
    """An output, of which each `step`-th element is known; `donor` is the input whose place it
    takes, -1: none."""

    dtype: str
    count: int
    step: int
    expected: str
    donor: int = -1


@dataclass(frozen=True)
class Bundled:
    """A case as it travels. `size` are the bytes of the weights, and `weights` what is in them, by
    the place where it begins; `kernels` is how many there are."""

    name: str
    library: str
    size: int = 0
    weights: dict[int, Recipe] = field(default_factory=dict)
    inputs: list[Recipe] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    kernels: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


def block() -> Array:
    """The noise: float32 from -1 to 1, by a finalizer of 32 bits."""
    x = np.arange(BLOCK, dtype=np.uint32)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ x >> np.uint32(shift)) * np.uint32(factor)
    return ((x ^ x >> np.uint32(16)) >> np.uint32(8)).astype(np.float32) / np.float32(1 << 23) - 1


def bytes_of(recipe: Recipe, noise: Array, raw: dict[str, bytes]) -> Array:
    """The bytes of an array, as uint8."""
    if recipe.raw:
        return np.frombuffer(raw[recipe.raw], np.uint8)
    if not recipe.spread:
        return np.zeros(recipe.count * WIDTHS[recipe.dtype], np.uint8)
    base = noise * np.float32(recipe.spread) + np.float32(recipe.mean)
    short = narrow(base, recipe.dtype)
    return np.resize(np.roll(short, -recipe.phase), recipe.count).view(np.uint8)


def narrow(x: Array, dtype: str) -> Array:
    """float32 as the numbers of a type; bfloat16 as its bits, rounded to nearest even."""
    if dtype == "bf16":
        bits = x.view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
        return (rounded >> np.uint32(16)).astype(np.uint16)
    return x.astype(np.float16 if dtype == "f16" else np.float32)


def wide(data: Array, dtype: str) -> Array:
    """The numbers in bytes, as float64."""
    if dtype == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    kinds = {"f32": np.float32, "f16": np.float16, "i64": np.int64, "i32": np.int32}
    return data.view(kinds[dtype]).astype(np.float64)


def recipe_of(data: Array, dtype: str, name: str, number: int, raw: dict[str, bytes]) -> Recipe:
    """The recipe for an array; bytes that have to travel are put into `raw`."""
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    if dtype in ("f32", "bf16", "f16") and flat.size >= SMALL:
        x = wide(flat, dtype)
        values = np.unique(x[:: max(1, x.size // 1024)])
        if np.isfinite(x).all() and values.size > 100:
            spread = float(x.std()) * math.sqrt(3)
            return Recipe(dtype, x.size, float(x.mean()), spread, number * 7919 % BLOCK)
    raw[name] = flat.tobytes()
    return Recipe(dtype, flat.size // WIDTHS.get(dtype, 1), raw=name)


def write(path: Path, case: Bundled, raw: dict[str, bytes], library: Path) -> None:
    """Write NAME.zip, whole or not at all."""
    part = path.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(library, case.library)
        file.writestr("case.json", json.dumps(asdict(case), indent=1))
        for name, data in raw.items():
            file.writestr(name, data)
    part.rename(path)


def read(path: Path) -> tuple[Bundled, dict[str, bytes]]:
    """A case and all bytes of its file, the library among them."""
    with zipfile.ZipFile(path) as file:
        raw = {name: file.read(name) for name in file.namelist()}
    rows = json.loads(raw["case.json"])
    rows["weights"] = {int(at): Recipe(**r) for at, r in rows["weights"].items()}
    rows["inputs"] = [Recipe(**r) for r in rows["inputs"]]
    rows["outputs"] = [Output(**r) for r in rows["outputs"]]
    return Bundled(**rows), raw


def weights_file(case: Bundled, raw: dict[str, bytes], noise: Array, path: Path) -> None:
    """Write the weights as a safetensors file whose data are one tensor."""
    head = json.dumps({"weights": {"dtype": "U8", "shape": [case.size],
                                   "data_offsets": [0, case.size]}}).encode()
    head += b" " * (-(len(head) + 8) % 64)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        start = file.tell()
        for at, recipe in sorted(case.weights.items()):
            file.seek(start + at)
            file.write(bytes_of(recipe, noise, raw).tobytes())
        file.truncate(start + case.size)


def error(case: Bundled, got: list[Array], raw: dict[str, bytes]) -> float:
    """The largest relative rms difference of an output from what was expected."""
    worst = 0.0
    for output, data in zip(case.outputs, got, strict=True):
        x = wide(data, output.dtype)[:: output.step]
        want = np.frombuffer(raw[output.expected], np.float64)
        most = float(np.sqrt(np.mean(want ** 2))) or 1.0
        off = float(np.sqrt(np.mean((x - want) ** 2))) / most
        worst = off if not off <= worst else worst  # NaN is worse than any number
    return worst
