"""The ops, kernels and kinds of plans that have another name since version 2."""

from __future__ import annotations

from graphtool.io.upgrades import Document

OPS = {"matmul_packed": "gemm", "matmul_bf16": "gemm_bf16", "matmul_int": "gemm_int",
       "matmul_blas": "blas"}
KERNELS = {"attention": "attend", "pool": "pooled", "nbits": "linear_nbits",
           "recurrent": "recurrence", "recurrent_grad": "recurrence_grad",
           "int8_gemm": "gemm_int", "int8_conv": "conv_int", "int8_depthwise": "depthwise_int"}
KINDS = {"attention": "attend", "columns": "pooled", "line": "winograd_line"}


def of_ops(document: Document) -> Document:
    """A graph whose nodes, including those of regions, have the current names of their ops."""
    def renamed(nodes: list[Document]) -> list[Document]:
        return [{**n, "op": OPS.get(n["op"], n["op"])} for n in nodes]
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
