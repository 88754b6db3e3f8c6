"""Strings in ONNX's own operators. Pictures are one operator there, and two ops here."""

from __future__ import annotations

from typing import Any

from graphtool.exporters.onnx.registry import Ref, form
from graphtool.exporters.onnx.writer import Writer
from graphtool.ir.graph import Node


@form("string_concat")
def string_concat(w: Writer, node: Node, a: Ref, b: Ref) -> Any:
    return w("StringConcat", a, b)


@form("string_split")
def string_split(w: Writer, node: Node, x: Ref) -> Any:
    return w("StringSplit", x, outputs=2, delimiter=node.attrs["delimiter"],
             maxsplit=node.attrs["most"])


@form("string_normalize")
def string_normalize(w: Writer, node: Node, x: Ref) -> Any:
    a = node.attrs
    return w("StringNormalizer", x, case_change_action=a["case"],
             is_case_sensitive=int(a["case_sensitive"]), stopwords=a["stopwords"] or None)


@form("regex_match")
def regex_match(w: Writer, node: Node, x: Ref) -> Any:
    return w("RegexFullMatch", x, pattern=node.attrs["pattern"])


@form("decode_image")
def decode_image(w: Writer, node: Node, x: Ref) -> Any:
    return w("ImageDecoder", x, pixel_format=node.attrs["pixels"])


@form("image_shape")
def image_shape(w: Writer, node: Node, x: Ref) -> Any:
    return w("Shape", w("ImageDecoder", x, pixel_format=node.attrs["pixels"]))
