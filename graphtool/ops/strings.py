"""What only the evaluator computes: strings and encoded pictures (by Pillow).

Strings are joined, split, cleaned and matched, and numbers converted to text and back. Compiled
code has neither, and refuses these ops with an error.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError, TypeMismatch, Unsupported, UnsupportedError
from graphtool.io import release
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ir.run_sizes import bare
from graphtool.ops.common import Array, broadcast_shapes, fail, need
from graphtool.symbolic import Dim, text

TEXT = dtypes.string.numpy
CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def _need_text(*types: TensorType) -> None:
    for t in types:
        need(t.dtype is dtypes.string, f"is not defined on {t.dtype.short}")


def _need_symbol(size: Dim) -> None:
    if not isinstance(size, int) and bare(size) is None:
        raise fail(f"the attribute size must be a symbol or a number, not {text(size)}")


def _text(values: list[str], shape: tuple[int, ...]) -> Array:
    return np.array(values, TEXT).reshape(shape)


# ---- joining and splitting ---------------------------------------------------------------------

def _concat_infer(a: TensorType, b: TensorType) -> TensorType:
    _need_text(a, b)
    return TensorType(dtypes.string, broadcast_shapes(a.shape, b.shape))


register(Op("string_concat", _concat_infer, np.strings.add, category="data",
            lowering=Lowering.EVALUATED,
            doc="a + b, two strings joined"))


def _split_infer(x: TensorType, *, size: Dim, delimiter: str = "",
                 most: int | None = None) -> tuple[TensorType, TensorType]:
    _need_text(x)
    _need_symbol(size)
    need(most is None or most >= 0, f"most must be 0 or more, not {most}")
    return TensorType(dtypes.string, (*x.shape, size)), TensorType(dtypes.int64, x.shape)


def _split_eval(x: Array, *, size: int | None = None, delimiter: str,
                most: int | None) -> tuple[Array, Array]:
    rows = [s.split(delimiter or None, -1 if most is None else most)
            for s in x.reshape(-1).tolist()]
    counts = np.array([len(row) for row in rows], np.int64)
    return _filled(rows, "", x.shape), counts.reshape(x.shape)


def _filled(rows: list[list[str]], fill: str, shape: tuple[int, ...]) -> Array:
    """The rows, one for each element of `shape`, filled up to the longest."""
    width = max(map(len, rows), default=0)
    return _text([p for row in rows for p in (*row, *[fill] * (width - len(row)))], (*shape, width))


register(Op("string_split", _split_infer, _split_eval, category="data",
            traits=Trait.SIZE, lowering=Lowering.EVALUATED,
            doc="the parts of each string between delimiters, and their number. An empty "
                "delimiter means white space; `most` is the greatest number of cuts; rows are "
                "filled with empty strings up to `size`"))


def _tokens_infer(x: TensorType, *, size: Dim, tokens: str = "",
                  separators: tuple[str, ...] = (), least: int = 1, marks: bool = False,
                  fill: str = "") -> TensorType:
    _need_text(x)
    _need_symbol(size)
    need(bool(tokens) != bool(separators), "give either tokens or separators, not both")
    for source in (tokens, *separators):
        _pattern(source)
    return TensorType(dtypes.string, (*x.shape, size))


def _tokens_eval(x: Array, *, size: int | None = None, tokens: str, separators: tuple[str, ...],
                 least: int, marks: bool, fill: str) -> Array:
    def cut(s: str) -> list[str]:
        pieces = [m.group() for m in _pattern(tokens).finditer(s)] if tokens else [s]
        for source in separators:
            pieces = [p for piece in pieces for p in _between(_pattern(source), piece)]
        kept = [t for t in pieces if len(t) >= max(least, 1)]
        return ["\x02", *kept, "\x03"] if marks else kept
    return _filled([cut(s) for s in x.reshape(-1).tolist()], fill, x.shape)


def _between(separator: re.Pattern[str], s: str) -> list[str]:
    """The parts of a string that are not covered by a match of the separator."""
    parts, start = [], 0
    for m in separator.finditer(s):
        parts.append(s[start:m.start()])
        start = m.end()
    return [*parts, s[start:]]


register(Op("string_tokens", _tokens_infer, _tokens_eval, category="data",
            traits=Trait.SIZE, lowering=Lowering.EVALUATED,
            doc="the matches of the pattern `tokens`, or the parts between separators, that have "
                "at least `least` letters; rows are filled up to `size`; `marks` puts \\x02 "
                "before and \\x03 after each row"))


# ---- cleaning and matching ---------------------------------------------------------------------

def _normalize_infer(x: TensorType, *, size: Dim, case: str = "NONE",
                     stopwords: tuple[str, ...] = (), case_sensitive: bool = False) -> TensorType:
    _need_text(x)
    _need_symbol(size)
    need(case in CASES, f"case must be one of {', '.join(CASES)}, not {case!r}")
    need(x.rank == 1 or (x.rank == 2 and x.shape[0] == 1),
         f"x must be a vector of strings, got {x}")
    return TensorType(dtypes.string, (*x.shape[:-1], size))


def _normalize_eval(x: Array, *, size: int | None = None, case: str, stopwords: tuple[str, ...],
                    case_sensitive: bool) -> Array:
    seen = str if case_sensitive else str.casefold
    stops = {seen(w) for w in stopwords}
    kept = [CASES[case](s) for s in x.reshape(-1).tolist() if seen(s) not in stops] or [""]
    return _text(kept, (*x.shape[:-1], len(kept)))


register(Op("string_normalize", _normalize_infer, _normalize_eval, category="data",
            traits=Trait.SIZE, lowering=Lowering.EVALUATED,
            doc="the strings that are not stop words, in upper or lower case; one empty string "
                "if none is left"))


def _match_infer(x: TensorType, *, pattern: str) -> TensorType:
    _need_text(x)
    _pattern(pattern)
    return TensorType(dtypes.bool_, x.shape)


def _pattern(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source)
    except re.error as error:
        raise TypeMismatch("GT0414", f"{source!r} is not a regular expression: {error}") from error


def _match_eval(x: Array, *, pattern: str) -> Array:
    whole = _pattern(pattern).fullmatch
    return np.array([whole(s) is not None for s in x.reshape(-1).tolist()], bool).reshape(x.shape)


register(Op("regex_match", _match_infer, _match_eval, category="data",
            lowering=Lowering.EVALUATED,
            doc="whether the whole string matches the regular expression, in Python's syntax"))


# ---- numbers as text ---------------------------------------------------------------------------

def as_text(x: Array) -> Array:
    """Numbers as text, with as few digits as are needed to tell them apart, without an exponent if
    that is short.

    Booleans become 1 and 0, the special floats INF, -INF and NaN.
    """
    if x.dtype == TEXT:
        return x
    if not dtypes.of_numpy(x.dtype).is_float:
        return _text([str(int(v)) for v in x.reshape(-1)], x.shape)
    return _text([_written(v) for v in x.reshape(-1)], x.shape)


def _written(v: Any) -> str:
    if not np.isfinite(v):
        return "NaN" if np.isnan(v) else "INF" if v > 0 else "-INF"
    # numpy cannot print bfloat16 and narrower floats
    v = v if v.dtype.kind == "f" else np.float32(v)
    plain = v == 0 or 1e-5 <= abs(v) < 1e16
    return (np.format_float_positional if plain else np.format_float_scientific)(v, trim="-")


def from_text(x: Array, to: DType) -> Array:
    """The numbers that are written in the strings.

    Raises InputError GT0506 for a string that is not a number, or a number that is out of the
    integer type's range.
    """
    values = [_number(s, to) for s in x.reshape(-1).tolist()]
    if to.is_float:
        return np.array(values, np.float64).astype(to.numpy).reshape(x.shape)
    try:
        wide = np.array(values, np.uint64 if to.kind == "uint" else np.int64)
    except OverflowError as error:
        raise InputError("GT0506", f"not a number of type {to.short}: {error}") from error
    out = wide.astype(to.numpy)
    if to.kind != "bool" and (bad := np.flatnonzero(out.astype(wide.dtype) != wide)).size:
        raise InputError("GT0506", f"{wide[bad[0]]} is out of the range of {to.short}")
    return out.reshape(x.shape)


def _number(s: str, to: DType) -> float | int:
    try:
        if to.is_float:
            return float(s)
        try:
            return int(s)
        except ValueError:
            return int(float(s))
    except (ValueError, OverflowError) as error:
        raise InputError("GT0506", f"{s!r} is not a number") from error


CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}
_KINDS = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")


def _check(x: TensorType, pixels: str) -> None:
    need(x.dtype is dtypes.uint8 and x.rank == 1,
         f"x must be the bytes of a file as u8[n], got {x}")
    need(pixels in CHANNELS, f"pixels must be one of {', '.join(CHANNELS)}, not {pixels!r}")


def _picture(x: Array) -> Any:
    """The decoded picture, or None if the bytes have none of these formats. Raises
    UnsupportedError GT0509 if Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        raise UnsupportedError(
            "GT0509", "decoding pictures needs Pillow, which is not installed",
            (Unsupported("decode_image", "needs Pillow"),),
            hint=release.install("images")) from None
    with suppress(OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        picture = Image.open(io.BytesIO(x.tobytes()), formats=_KINDS)
        picture.load()
        return picture
    return None


def _shape_infer(x: TensorType, *, pixels: str = "RGB") -> TensorType:
    _check(x, pixels)
    return TensorType(dtypes.int64, (3,))


def _shape_eval(x: Array, *, pixels: str) -> Array:
    picture = _picture(x)
    size = (0, 0) if picture is None else (picture.height, picture.width)
    return np.array([*size, CHANNELS[pixels]], np.int64)


register(Op("image_shape", _shape_infer, _shape_eval, category="shape",
            lowering=Lowering.EVALUATED,
            doc="the height, width and channels of an encoded picture; height and width are 0 if "
                "it cannot be read"))


def _decode_infer(x: TensorType, *, shape: tuple[Dim, ...], pixels: str = "RGB") -> TensorType:
    _check(x, pixels)
    need(len(shape) == 3 and shape[2] == CHANNELS[pixels],
         f"the shape must be height, width and {CHANNELS[pixels]} channels")
    return TensorType(dtypes.uint8, shape)


def _decode_eval(x: Array, *, shape: tuple[int, ...], pixels: str) -> Array:
    picture = _picture(x)
    if picture is None:
        return np.zeros((0, 0, CHANNELS[pixels]), np.uint8)
    if pixels == "Grayscale":
        return np.asarray(picture.convert("L"))[:, :, None]
    out = np.asarray(picture.convert("RGB"))
    return out[:, :, ::-1] if pixels == "BGR" else out


register(Op("decode_image", _decode_infer, _decode_eval, category="data",
            lowering=Lowering.EVALUATED,
            doc="the pixels u8[height, width, channels] of an encoded picture (BMP, JPEG, JPEG "
                "2000, TIFF, PNG, WebP or portable map) whose sizes image_shape gives"))
