"""ONNX's own backend cases of every class: node, simple, pytorch-converted, pytorch-operator, and
the light form of the real models. Made in the process or read from the onnx package; no download.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, OptionalProto, SequenceProto, TensorProto, numpy_helper

Values = list[Any]  # arrays, lists of them for sequences, None for an empty optional
DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FOLDERS = ("simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True, eq=False)
class Case:
    """A model with inputs and the outputs that are right; `kind` is the class it belongs to."""

    name: str
    kind: str
    model: ModelProto
    data_sets: list[tuple[Values, Values]]
    rtol: float
    atol: float

    @property
    def ops(self) -> list[str]:
        """The operators of the model, those of subgraphs left out."""
        return sorted({f"{n.domain}.{n.op_type}" if n.domain not in ("", "ai.onnx") else n.op_type
                       for n in self.model.graph.node})

    @property
    def inputs(self) -> list[str]:
        """The names that values are given for."""
        held = {t.name for t in self.model.graph.initializer}
        return [v.name for v in self.model.graph.input if v.name not in held]


@cache
def cases() -> tuple[Case, ...]:
    """All of them, in an order of their own."""
    warnings.simplefilter("ignore")
    return (*_node(), *_simple(), *(c for kind in FOLDERS for c in _stored(kind)), *_real())


def chosen(names: list[str], every: tuple[Case, ...] | None = None) -> list[Case]:
    """The cases with one of the words in their names or classes; all if there are no words."""
    return [c for c in every or cases()
            if not names or any(n in c.name or n == c.kind for n in names)]


def tenth() -> list[Case]:
    """Every tenth case, and of each operator the first: what CI runs."""
    seen: set[str] = set()
    out = []
    for i, case in enumerate(cases()):
        if i % 10 == 0 or not seen.issuperset(case.ops):
            out.append(case)
        seen.update(case.ops)
    return out


def _node() -> Iterator[Case]:
    from onnx.backend.test.case.node import collect_testcases
    for c in collect_testcases(None):
        sets = [([*map(value, i)], [*map(value, o)]) for i, o in c.data_sets]
        yield Case(c.name, "node", c.model, sets, c.rtol, c.atol)


def _simple() -> Iterator[Case]:
    """Those that the package makes in the process; the folder holds most of them again."""
    from onnx.backend.test.case.model import collect_testcases
    for c in collect_testcases():
        if c.model is not None:
            sets = [([*map(value, i)], [*map(value, o)]) for i, o in c.data_sets]
            yield Case(c.name, "simple", c.model, sets, c.rtol, c.atol)


def _stored(kind: str) -> Iterator[Case]:
    made = {c.name for c in _simple()} if kind == "simple" else set()
    for folder in sorted((DATA / kind).iterdir()):
        if (folder / "model.onnx").exists() and folder.name not in made:
            model = onnx.load(folder / "model.onnx")
            sets = [(_values(at, "input", model.graph.input),
                     _values(at, "output", model.graph.output))
                    for at in sorted(folder.glob("test_data_set_*"))]
            yield Case(folder.name, kind, model, sets, 1e-3, 1e-7)


def _values(folder: Path, stem: str, infos: Any) -> Values:
    return [value(_message(path, info)) for i, info in enumerate(infos)
            if (path := folder / f"{stem}_{i}.pb").exists()]


def _message(path: Path, info: Any) -> Any:
    kinds = {"sequence_type": SequenceProto, "optional_type": OptionalProto}
    message = kinds.get(info.type.WhichOneof("value"), TensorProto)()
    message.ParseFromString(path.read_bytes())
    return message


def _real() -> Iterator[Case]:
    """The published image models with made-up weights, and what the package says they give."""
    for path in sorted((DATA / "light").glob("light_*.onnx")):
        name = path.stem.removeprefix("light_")
        model = onnx.load(path)
        want = numpy_helper.to_array(onnx.load_tensor(str(path.with_name(
            f"{path.stem}_output_0.pb"))))
        held = {t.name for t in model.graph.initializer}
        given = [_dummy(v) for v in model.graph.input if v.name not in held]
        yield Case(f"test_{name}", "real", model, [(given, [want])],
                   2e-3 if name == "densenet121" else 1e-3, 1e-7)


def _dummy(info: Any) -> np.ndarray[Any, Any]:
    """The input that onnx's runner makes for these: 0, 1, 2, … over the number of elements."""
    shape = tuple(d.dim_value or 1 for d in info.type.tensor_type.shape.dim)
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def value(x: Any) -> Any:
    """An array for a tensor, a list for a sequence, None or the content for an optional."""
    match x:
        case TensorProto():
            return numpy_helper.to_array(x)
        case SequenceProto():
            return numpy_helper.to_list(x)
        case OptionalProto():
            return numpy_helper.to_optional(x)
        case list():
            return [value(i) for i in x]
        case np.generic():
            return np.asarray(x)
    return x
