"""A refusal of an importer is a full sentence: what is not supported, or what is needed."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from graphtool.front import Refused
from graphtool.importers.onnx.driver.values import floats, ints, one
from graphtool.symbolic import symbol

ROOT = Path(__file__).parents[2] / "graphtool" / "importers"
SAYS = ("supported", "must", "state", "need", "has no ", "leave", "does not",
        "known", "more than", "call ")


def refusals() -> dict[str, str]:
    """The place of each refusal, and its text without the parts that are computed."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        for x in ast.walk(ast.parse(path.read_text())):
            if isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and (
                    x.func.id == "Refused"):
                found[f"{path.relative_to(ROOT)}:{x.lineno}"] = "".join(
                    s.value for s in ast.walk(x)
                    if isinstance(s, ast.Constant) and isinstance(s.value, str))
    return found


@pytest.mark.long
def test_a_refusal_says_what_is_needed() -> None:
    texts = refusals()
    assert len(texts) > 130
    assert not {k: t for k, t in texts.items() if t and not any(w in t for w in SAYS)}


@pytest.mark.long
def test_a_computed_value_is_refused_in_one_place() -> None:
    """`values.computed` says what to do; no other refusal says the same without it."""
    assert not {k: t for k, t in refusals().items() if "is computed from the inputs" in t}


@pytest.mark.parametrize("read", [floats, ints, one])
def test_a_symbolic_size_is_called_that(read: object) -> None:
    sizes = np.array([symbol("N")], object)
    with pytest.raises(Refused, match=r"pads depends on a symbolic size, .* --dynamic NAME=SIZE"):
        read(sizes, "pads")  # type: ignore[operator]


def test_a_vector_is_no_number() -> None:
    with pytest.raises(Refused, match="k must be one number, but has 2 elements"):
        one(np.array([1, 2]), "k")
