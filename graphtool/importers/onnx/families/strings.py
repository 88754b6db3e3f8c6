"""Operators on strings and encoded images. Those that only move strings are in other families."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.onnx.driver.computed import entry, fresh
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.ops.pictures import CHANNELS
from graphtool.symbolic import maximum, product


@onnx_op("StringSplit", since=20, fold=False)
def string_split(x: Any, *, delimiter: str = "", maxsplit: int | None = None) -> Any:
    """`string_split`: the parts of each string, and how many there are. Their number is
    symbolic."""
    return o.string_split(x, delimiter=delimiter, most=maxsplit, size=fresh(x, None))


@onnx_op("StringNormalizer", since=10, fold=False)
def string_normalizer(x: Any, *, case_change_action: str = "NONE", is_case_sensitive: int = 0,
                      locale: str = "", stopwords: Any = None) -> Any:
    """`string_normalize`. Upper and lower case follow Unicode whatever the locale is."""
    return o.string_normalize(x, case=case_change_action, stopwords=stopwords or (),
                              case_sensitive=bool(is_case_sensitive),
                              size=fresh(x, maximum(product(x.shape), 1)))


@onnx_op("Tokenizer", domain="com.microsoft", fold=False)
def tokenizer(x: Any, *, mark: int, mincharnum: int, pad_value: str, separators: Any = None,
              stopwords: Any = None, tokenexp: str = "") -> Any:
    """`string_tokens`; single letters if the only separator is the empty string."""
    if stopwords:
        raise Refused("a tokenizer with stop words is not supported")
    letters = not tokenexp and tuple(separators or ("",)) == ("",)
    return o.string_tokens(x, tokens="(?s)." if letters else tokenexp,
                           separators=() if letters or tokenexp else separators, least=mincharnum,
                           marks=bool(mark), fill=pad_value, size=fresh(x, None))


@onnx_op("ImageDecoder", since=20, fold=False)
def image_decoder(x: Any, *, pixel_format: str = "RGB") -> Any:
    """`decode_image`, u8[H, W, channels]. `image_shape` reads the sizes at run time."""
    if pixel_format not in CHANNELS:
        raise Refused(f"the pixel_format {pixel_format!r} is not supported")
    size = o.image_shape(x, pixels=pixel_format)
    shape = (entry(size, 0), entry(size, 1), CHANNELS[pixel_format])
    return o.decode_image(x, shape=shape, pixels=pixel_format)
