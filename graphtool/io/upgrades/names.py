"""The ops, kernels and kinds of plans that have another name since version 2, or since version 3.

From version 3 on a plan has the name of the op that stands for its kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphtool.io.upgrades import Document

OPS = {"matmul_packed": "gemm", "matmul_bf16": "gemm_bf16", "matmul_int": "gemm_int",
       "matmul_blas": "blas"}
KERNELS = {"attention": "attend", "pool": "pooled", "nbits": "linear_nbits",
           "recurrent": "recurrence", "recurrent_grad": "recurrence_grad",
           "int8_gemm": "gemm_int", "int8_conv": "conv_int", "int8_depthwise": "depthwise_int"}
KINDS = {"attention": "attend", "columns": "pooled", "line": "winograd_line"}

OPS_3 = {"conv_packed": "conv_direct", "detach": "stop_gradient"}
KERNELS_3 = {"conv": "conv_direct"}
KINDS_3 = {("conv", "direct"): "conv_direct", ("conv", "bf16"): "conv_bf16",
           ("product", "bf16"): "gemm_bf16", ("recurrence", "panels"): "recurrence",
           ("recurrence_grad", "panels"): "recurrence"}
INTEGER_3 = {"conv_direct": "conv_int", "gemm": "gemm_int", "winograd": "winograd_int",
             "depthwise": "depthwise_int"}


def of_ops(document: Document, names: Mapping[str, str] = OPS) -> Document:
    """A graph whose nodes, including those of regions, have new names of their ops."""
    def renamed(nodes: list[Document]) -> list[Document]:
        return [{**n, "op": names.get(n["op"], n["op"])} for n in nodes]
    regions = {"regions": [{**r, "nodes": renamed(r["nodes"])} for r in document["regions"]]
               } if "regions" in document else {}
    return {**document, "nodes": renamed(document["nodes"]), **regions}


def of_plan(text: str) -> str:
    """A plan as a file has it, `attention{keys=0}`, with the current name of its kind."""
    kind, brace, rest = text.partition("{")
    return KINDS.get(kind, kind) + brace + rest


def of_times(document: Document) -> Document:
    """A line of a tuning file whose plans have the current names of their kinds."""
    if not isinstance(document.get("us"), dict):
        return document
    return {**document, "us": {of_plan(k): us for k, us in document["us"].items()}}


def kind_3(kind: str, site: str) -> str:
    """The kind in version 3 of a plan for a site: that of small integers has a name of its own."""
    name = KINDS_3.get((site.partition("{")[0], kind), kind)
    return INTEGER_3.get(name, name) if "integer=" in site else name


def of_times_3(document: Document) -> Document:
    """A line of a tuning file, or a choice, whose plans have the names of version 3."""
    if not isinstance(document.get("us"), dict):
        return document
    times = {}
    for plan, us in document["us"].items():
        kind, brace, rest = plan.partition("{")
        times[kind_3(kind, document["site"]) + brace + rest] = us
    return {**document, "us": times}
