"""The page of StableHLO's operations: the table of handlers, and every reason for a refusal."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from docs.generators.markdown import code, table, whole
from graphtool.front.names import read
from graphtool.importers.stablehlo import HANDLERS, families
from graphtool.importers.stablehlo.driver.convert import FLAT, PASSES
from graphtool.importers.stablehlo.driver.parts import PAIRED
from graphtool.importers.stablehlo.families.composite import REASONS, TARGETS
from graphtool.importers.stablehlo.families.control import OUTSIDE


def page() -> str:
    """One row an operation, one a call of known meaning, one a reason."""
    names = sorted({*HANDLERS, *PAIRED})
    read = [(code(n), _said(n), "yes" if n in PAIRED or n in FLAT or n in PASSES
             or n.startswith(("check.", "chlo.broadcast_")) else "no")
            for n in names if n.removeprefix("stablehlo.") not in OUTSIDE]
    never = [(code(f"stablehlo.{n}"), why) for n, why in sorted(OUTSIDE.items())]
    never += [(code(f"stablehlo.custom_call @{n}"), why) for n, why in sorted(REASONS.items())]
    return whole("Operations of StableHLO", (
        "What `graphtool import` makes of each operation of StableHLO and CHLO, for the evaluator "
        "and for C alike: a graph has one meaning in both. Quantised operands are taken by every "
        "operation of numbers and by those that move elements."),
        table(("operation", "what it becomes", "complex"), read),
        "\n## Custom calls that are known\n\n" + ", ".join(map(code, sorted(TARGETS))) + ".\n",
        "\n## What is refused by name\n", table(("operation", "why"), never),
        "\nThe others are refused only as follows. No blocks with branches between them, no types "
        "that the [table of types](dtypes.md) lacks, no scales of blocks in quantised types, no "
        "`chlo.scan` and `chlo._asin_acos_kernel`.\n",
        table(("operations of", "reason"), _reasons()))


def _said(name: str) -> str:
    """The first sentence of the handler's docstring, or the op that it is."""
    handler = HANDLERS.get(name)
    own = name.rpartition(".")[2]
    if handler is None:
        return "on complex numbers only"
    text = inspect.getdoc(handler.fn)
    if text and "<lambda>" not in text:
        return text.split("\n\n")[0]
    if name.startswith("chlo.broadcast_"):
        return "the operation on operands that are repeated to one shape"
    words = read("hlo").get(name.removeprefix("stablehlo."))
    return f"the op {code(words[0].op if words else own)}"


def _reasons() -> Iterator[tuple[str, str]]:
    folder = Path(inspect.getfile(families)).parent
    for path in sorted(folder.glob("*.py")):
        module = import_module(f"{families.__name__}.{path.stem}")
        seen: dict[str, None] = {}
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Refused" and (
                    node.args and isinstance(node.args[0], ast.Constant)):
                seen[str(node.args[0].value)] = None
        title = (inspect.getdoc(module) or path.stem).split(":")[0].split("\n")[0].rstrip(".")
        yield from ((title, text) for text in seen if text)
