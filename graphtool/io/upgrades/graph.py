"""Upgrades of NAME.graph.json, oldest first; the policy stands in io/versions.py."""

from __future__ import annotations

from graphtool.io.upgrades import Document, Upgrade, named_arrays, names, plans


def to_2(document: Document) -> Document:
    """Version 2 names in its head the release that it needs. Nodes have plans; what those were
    chosen over is a table. Some ops are called otherwise.
    """
    return plans.in_nodes(names.of_ops(document))


def to_3(document: Document) -> Document:
    """Version 3 calls plans by the op that stands for their kernel, conv_packed conv_direct and
    detach stop_gradient. A model of a training may have arrays under several names."""
    told = document | ({"meta": named_arrays(document["meta"])} if "meta" in document else {})
    return plans.to_3(names.of_ops(told, names.OPS_3))


UPGRADES: tuple[Upgrade, ...] = (to_2, to_3)
