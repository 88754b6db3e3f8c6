"""graphtool/ops/__init__.pyi is what the registry makes; `--update-golden` writes it anew."""

from __future__ import annotations

import inspect
import keyword
import re
import textwrap
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import graphtool.ops
from graphtool.ir.op import OPS, Op
from graphtool.scalars.table import TABLE
from graphtool.symbolic import Dim

ARITY = {row.name: row.arity for row in TABLE}
PATH = Path(graphtool.ops.__file__).with_suffix(".pyi")
HEAD = '''\
"""Every op with its operands and attributes. Written by `pytest tests/ops/test_stub.py
--update-golden`.

Operands are positional; what a call gives depends on them: a Tracer records, a Pattern matches,
arrays evaluate. Attributes are keywords.
"""

from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Value
from graphtool.ir.op import Op, Operators
from graphtool.ir.plan import Plan
from graphtool.symbolic import Dim

Tensor = Operators | Value | np.ndarray[Any, Any] | np.generic | int | float
'''


def annotation(a: Any) -> str:
    """A type as Python writes it, with the names that the stub imports."""
    origin, args = get_origin(a), get_args(a)
    if origin is tuple:
        return f"tuple[{', '.join('...' if x is ... else annotation(x) for x in args)}]"
    if isinstance(a, UnionType):
        dims = set(get_args(Dim))
        names = ["Dim"] if dims <= set(args) else []
        return " | ".join(names + [annotation(x) for x in args if not (names and x in dims)])
    return "None" if a in (None, NoneType) else "Any" if a is Any else str(a.__name__)


def operands(op: Op) -> tuple[list[str], bool]:
    """The operands as parameters, and whether there may be any number of them."""
    if op.name in ARITY:
        return [f"{name}: Tensor" for name in ("x", "ab")[ARITY[op.name] - 1]], False
    hints, found, star = get_type_hints(op.infer), [], False
    for p in op.operands:
        star = star or p.kind is p.VAR_POSITIONAL
        given = p.default is inspect.Parameter.empty
        none = not given or NoneType in get_args(hints.get(p.name))
        found.append(("*" if p.kind is p.VAR_POSITIONAL else "") + p.name
                     + (": Tensor | None" if none else ": Tensor") + ("" if given else " = None"))
    return found, star


def stub(op: Op) -> str:
    """The op as a record with a typed call, and the first line of what is said of it."""
    positional, star = operands(op)
    keywords = [f"{a.name}: {annotation(a.annotation)}" + ("" if a.required else " = ...")
                for a in op.schema.values()]
    divider = [] if star else ["/"]
    parts = ["self", *positional, *divider, *(["*"] if keywords and not star else []), *keywords]
    name = op.name + "_" * keyword.iskeyword(op.name)
    line = f"    def __call__({', '.join(parts)}) -> Any:"
    if len(line) > 100:
        line = "    def __call__(\n        " + ",\n        ".join(parts) + ",\n    ) -> Any:"
    doc = textwrap.fill(f'"""{op.doc.splitlines()[0]}"""', 100, initial_indent=" " * 8,
                        subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
    return f"class _{op.name}(Op):\n{line}\n{doc}\n\n{name}: _{op.name}"


def test_the_stub_is_up_to_date(request: pytest.FixtureRequest) -> None:
    text = "\n\n".join([HEAD.rstrip(), *(stub(OPS[name]) for name in sorted(OPS))]) + "\n"
    if request.config.getoption("--update-golden"):
        PATH.write_text(text)
    assert PATH.read_text() == text


def test_one_spelling_of_a_call() -> None:
    """An op is called as `o.name(…)`; only ir/, which knows no op set, asks the registry."""
    found = [str(p) for p in PATH.parents[1].rglob("*.py")
             if "ir" not in p.parts and re.search(r"\bOPS\[\"\w+\"\]\(", p.read_text())]
    assert found == []
