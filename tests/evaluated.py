"""The cases of what is evaluated only: ops on strings and pictures, and others with strings."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.dtypes import BY_NAME, as_strings
from graphtool.ir.op import OPS
from tests.cases import Array, Case, f, ints

EVALUATED: list[Case] = []


def case(op: str, operands: list[Any], **attrs: Any) -> None:
    number = sum(c.op.name == op for c in EVALUATED)
    EVALUATED.append(Case(f"{op}-text-{number}", OPS[op], tuple(operands), attrs, False))


def words(*values: Any) -> Array:
    return as_strings(np.array(values, object))


def picture(kind: str, mode: str = "RGB") -> Array:
    """The bytes of a picture of 4 by 3 pixels."""
    from PIL import Image
    pixels = np.arange(36, dtype=np.uint8).reshape(3, 4, 3) * 7
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, kind)
    return np.frombuffer(file.getvalue(), np.uint8)


_FRUIT = words("an apple", "Pear", "", "été")

case("string_concat", [_FRUIT, words("!")])
case("string_concat", [words(["a"], ["b"]), _FRUIT])
case("string_split", [_FRUIT], size=2)
case("string_split", [words(["a,b,,c", ","], ["", "x"])], size=4, delimiter=",")
case("string_split", [words("a b c")], size=2, most=1)
case("string_split", [np.zeros((0, 2), BY_NAME["str"].numpy)], size=0)
case("string_tokens", [_FRUIT], size=2, tokens=r"\w+")
case("string_tokens", [words(["a, b;c"], ["dd"])], size=5, separators=(r"[,;]", " "), marks=True,
     fill="#")
case("string_normalize", [_FRUIT], size=4, case="UPPER")
case("string_normalize", [_FRUIT], size=3, stopwords=("pear",))
case("string_normalize", [words(["a", "A"])], size=1, stopwords=("a",), case_sensitive=True)
case("string_normalize", [words("a")], size=1, stopwords=("A",), case="LOWER")
case("regex_match", [_FRUIT], pattern=r"\w+")
for _op in ("eq", "ne", "lt", "ge"):
    case(_op, [_FRUIT, words("Pear")])
case("select", [np.array([True, False, True, False]), _FRUIT, words("x")])
for _to in ("f32", "f64", "bf16", "i32", "u8", "bool"):
    case("cast", [words("1", "0", " 7 ")], dtype=BY_NAME[_to])
case("cast", [words("1e3", "-INF", "NaN", "2.5")], dtype=BY_NAME["f16"])
case("cast", [f(0.1, 1.0, 1e20, 1e-7, -0.0, 123456789.0, np.nan, np.inf)], dtype=BY_NAME["str"])
case("cast", [ints([[3, -4]])], dtype=BY_NAME["str"])
case("cast", [np.array(True)], dtype=BY_NAME["str"])
case("reshape", [_FRUIT], shape=(2, 2))
case("transpose", [words(["a", "b"])], perm=(1, 0))
case("broadcast", [words("a")], shape=(2, 1))
case("slice", [_FRUIT], start=(1,), limit=(4,), strides=(2,))
case("concat", [_FRUIT, words("z")], axis=0)
case("reverse", [_FRUIT], axes=(0,))
case("gather", [_FRUIT, ints([[3], [0]])], axes=(0,))
case("gather", [_FRUIT, ints([2])], axes=(0,))
case("scatter", [_FRUIT, ints([[3]]), words("z")], axes=(0,))
case("sort", [_FRUIT], axis=0)
case("image_shape", [picture("PNG")])
case("image_shape", [np.zeros(9, np.uint8)], pixels="Grayscale")
for _kind, _mode in (("PNG", "RGB"), ("BMP", "RGB"), ("TIFF", "L"), ("PPM", "RGB")):
    for _pixels, _count in (("RGB", 3), ("BGR", 3), ("Grayscale", 1)):
        case("decode_image", [picture(_kind, _mode)], shape=(3, 4, _count), pixels=_pixels)
case("decode_image", [np.zeros(9, np.uint8)], shape=(0, 0, 3))
