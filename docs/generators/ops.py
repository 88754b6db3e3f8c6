"""The page of ops: signature, meaning, attributes and facets of each, by category."""

from __future__ import annotations

from docs.generators.markdown import code, prose, table, whole
from graphtool.report.catalog import OpEntry, ops_report


def page() -> str:
    """All ops of the registry."""
    ops = ops_report().ops
    categories = dict.fromkeys(sorted(op.category for op in ops))
    parts = [f"## {c}\n\n" + "\n".join(_op(op) for op in ops if op.category == c)
             for c in categories]
    return whole("Ops", (
        f"The graph has {len(ops)} ops. An op is one record: how to infer the types of its "
        "results, how to evaluate it, its gradient, its lowering, and its definition by other "
        "ops. `graphtool ops NAME` prints the same entry."), *parts)


def _op(op: OpEntry) -> str:
    attrs = [(code(a.name), code(a.type), "required" if a.required else code(a.default))
             for a in op.attrs]
    facts = f"Has {', '.join(op.has)}." if op.has else ""
    facts += f" Lowering: {op.lowering}. Mixed precision: {op.precision}."
    facts += f" Movement: {', '.join(op.movement)}." if op.movement else ""
    facts += f" Traits: {', '.join(op.traits)}." if op.traits else ""
    return "\n".join(filter(None, (
        f"### {op.name}\n", f"{code(op.name + op.signature)}\n", f"{prose(op.doc)}\n",
        table(("attribute", "type", "default"), attrs) if attrs else "", f"{facts.strip()}\n")))
