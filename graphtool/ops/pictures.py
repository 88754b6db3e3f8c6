"""Encoded pictures: their size and their pixels. Only the evaluator decodes them, with Pillow."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.errors import Unsupported, UnsupportedError
from graphtool.io import release
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ops.common import Array, need
from graphtool.symbolic import Dim

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
