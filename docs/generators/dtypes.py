"""The page of element types: the rows of the table."""

from __future__ import annotations

from docs.generators.markdown import code, table, whole
from graphtool.dtypes import TABLE


def page() -> str:
    """One row a type."""
    rows = [(code(t.name), code(t.short), str(t.bits) if t.c else "", t.kind,
             code(t.c) if t.c else "evaluator only", code(t.computes.short) if t.c else "",
             str(t.onnx or ""), code(t.torch), code(t.safetensors)) for t in TABLE]
    return whole("Element types", (
        "Listings and files use the short names. A type of less than 8 bits takes a byte for each "
        "element in memory and in inputs; constants of such types share bytes in the weights "
        "file. 16-bit and 8-bit floats are stored so and computed in float32."),
        table(("type", "short", "bits", "kind", "type in C", "computed in", "number in ONNX",
               "in torch", "in safetensors"), rows))
