"""Upgrades of build.json, oldest first; the policy stands in io/versions.py."""

from __future__ import annotations

from graphtool.io.upgrades import Document, Upgrade, named_arrays, names, plans


def to_2(document: Document) -> Document:
    """Version 2 names in its head the release that it needs. The choice of a kernel is a record."""
    return plans.in_steps(document)


def to_3(document: Document) -> Document:
    """Version 3 calls plans by the op that stands for their kernel. Each step says what its kernel
    assumes of the numbers; older releases did not tell, so a convolution and an attention may
    assume finite ones. Their runs do not find indices out of range. A model of a training may have
    arrays under several names.
    """
    document = plans.of_steps(document, names.of_times_3, dict)
    steps = [{"assumes": _assumed(row), **row} for row in document["steps"]]
    document = named_arrays(document)
    finite = any(row["assumes"] == "finite" for row in steps)
    return {"assumes": "finite" if finite else "nothing", **document, "steps": steps,
            "index_checks": False}


def _assumed(row: Document) -> str:
    made = row.get("choice")
    kind = str(made["site"]).partition("{")[0] if isinstance(made, dict) else ""
    return "finite" if kind in ("conv", "attention") else "nothing"


UPGRADES: tuple[Upgrade, ...] = (to_2, to_3)
