"""String ops as ONNX operators, and images: ImageDecoder is two of our ops, shape and pixels."""

from __future__ import annotations

from typing import Any

from graphtool.exporters.onnx.kit import Node, Ref, Writer, form


@form("string_split")
def string_split(w: Writer, node: Node, x: Ref) -> Any:
    """StringSplit: (parts, count of each)."""
    return w("StringSplit", x, outputs=2, delimiter=node.attrs["delimiter"],
             maxsplit=node.attrs["most"])


@form("string_normalize")
def string_normalize(w: Writer, node: Node, x: Ref) -> Any:
    """StringNormalizer."""
    a = node.attrs
    return w("StringNormalizer", x, case_change_action=a["case"],
             is_case_sensitive=int(a["case_sensitive"]), stopwords=a["stopwords"] or None)


@form("decode_image")
def decode_image(w: Writer, node: Node, x: Ref) -> Any:
    """ImageDecoder: u8[H, W, channels]."""
    return w("ImageDecoder", x, pixel_format=node.attrs["pixels"])


@form("image_shape")
def image_shape(w: Writer, node: Node, x: Ref) -> Any:
    """Shape of ImageDecoder's result: i64[3]."""
    return w("Shape", w("ImageDecoder", x, pixel_format=node.attrs["pixels"]))
