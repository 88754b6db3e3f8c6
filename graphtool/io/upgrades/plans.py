"""A kernel's choice as one text, `product{m=8} cost: gemm{nv=2} 1.2, gemm{nv=1} 1.9`, becomes the
node's plan and a record of what it was chosen over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from graphtool.io.upgrades import Document, names

_OPS_3 = {"conv_direct", "conv_bf16", "gemm_bf16", *names.INTEGER_3.values()}
_TEXT = re.compile(r"(\w+\{[^{}]*\}) (\w+): (.+)")
_RANKED = re.compile(r"(\w+(?:\{[^{}]*\})?) ([0-9.e+-]+)(?:, |$)")


def in_nodes(document: Document) -> Document:
    """A graph whose nodes have plans, and a table of choices at its end. Raises ValueError."""
    choices: list[Document] = []
    nodes = [_node(n, "", choices) for n in document["nodes"]]
    regions = [{**r, "nodes": [_node(n, f"{r['id']}/", choices) for n in r["nodes"]]}
               for r in document.get("regions", ())]
    if not choices:
        return document
    return {**document, "nodes": nodes, "regions": regions, "choices": choices}


def in_steps(document: Document) -> Document:
    """A program or build whose runs have choices as records. Raises ValueError."""
    return of_steps(document, lambda told: _record(told) if told else None, str)


def of_steps(document: Document, change: Callable[[Any], Any], kind: type) -> Document:
    """A program or build with `change` applied to those choices of its runs that are of a kind."""
    return {**document, "steps": [_step(s, change, kind) for s in document["steps"]]}


def to_3(document: Document) -> Document:
    """A graph of version 2 with the names of version 3 in the plans of its nodes and its choices.
    """
    new = {**document, "nodes": [_planned(n) for n in document["nodes"]]}
    if "regions" in document:
        new["regions"] = [{**r, "nodes": [_planned(n) for n in r["nodes"]]}
                          for r in document["regions"]]
    if "choices" in document:
        new["choices"] = [names.of_times_3(c) for c in document["choices"]]
    return new


def _planned(row: Document) -> Document:
    plan = row.get("attrs", {}).get("plan")
    if not isinstance(plan, dict):
        return row
    kind = row["op"] if row["op"] in _OPS_3 else names.KINDS_3.get((row["op"], plan["kind"]),
                                                                   plan["kind"])
    return {**row, "attrs": {**row["attrs"], "plan": {**plan, "kind": kind}}}


def _node(row: Document, place: str, choices: list[Document]) -> Document:
    told = row.get("attrs", {}).get("choice")
    if not isinstance(told, str):
        return row
    made = _record(told)
    name = row["id"] if isinstance(row["id"], str) else row["id"][0]
    choices.append({"id": place + name, **made})
    plan = _plan(next(iter(made["us"])))
    return {**row, "attrs": {("plan" if k == "choice" else k): (plan if k == "choice" else v)
                             for k, v in row["attrs"].items()}}


def _step(row: Document, change: Callable[[Any], Any], kind: type) -> Document:
    """The step with its choice changed; those within branches and loops as well."""
    inner = {k: [_step(s, change, kind) for s in v] for k, v in row.items()
             if k in ("then", "orelse", "cond", "body")}
    told = row.get("choice")
    return {**row, **inner, **({"choice": change(told)} if isinstance(told, kind) else {})}


def _record(text: str) -> Document:
    match = _TEXT.fullmatch(text)
    ranked = _RANKED.findall(match[3]) if match else []
    if match is None or ", ".join(" ".join(r) for r in ranked) != match[3]:
        raise ValueError(f"{text!r} records no choice of a kernel")
    site = match[1].replace("recurrence{turns=", "recurrence{steps=")
    return {"site": site, "by": match[2],
            "us": {names.of_plan(plan): float(us) for plan, us in ranked}}


def _plan(text: str) -> Document:
    kind, _, inner = text.rstrip("}").partition("{")
    pairs = [p.partition("=") for p in inner.split(",")] if inner else []
    return {"kind": kind, **{k: int(v) for k, _, v in pairs}}
