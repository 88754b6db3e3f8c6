"""The page of passes: the pipeline with its reasons, the constraints of order, the arguments."""

from __future__ import annotations

import inspect

from docs.generators.markdown import code, prose, table, whole
from graphtool.passes import ORDER, functions
from graphtool.report.catalog import passes_report


def page() -> str:
    """The table of passes, the table of order, and each pass's docstring."""
    rows = passes_report().passes
    pipeline = [(str(i), code(r.name), r.doc, r.reason)
                for i, r in enumerate((r for r in rows if r.default), 1)]
    others = [(code(r.name), r.doc, r.reason) for r in rows if not r.default]
    calls = {r.name: f"{r.name}{{{r.arguments}}}" if r.arguments else r.name for r in rows}
    each = [f"### {name}\n\n{code(calls[name])}\n\n{prose(inspect.getdoc(f) or '')}\n"
            for name, f in functions().items()]
    return whole("Passes", (
        "A pass is a function from graph to graph. `graphtool opt --passes A,B` runs the named "
        "ones, `graphtool opt` the default pipeline. The graph is verified after each pass."),
        "## The default pipeline\n", table(("", "pass", "what it does", "why here"), pipeline),
        "## Passes that run only when they are named\n",
        table(("pass", "what it does", "where it belongs"), others),
        "## Which pass must come before which\n",
        "A list of passes in another order is refused (GT0604).\n",
        table(("first", "then", "because"), [(code(a), code(b), why) for a, b, why in ORDER]),
        "## Arguments\n", *each)
