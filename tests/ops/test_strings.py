"""Strings against Python's own, and what cannot be said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError, TypeMismatch, UnsupportedError
from graphtool.ir.graph import TensorType
from graphtool.ops import strings
from tests.evaluated import picture, words


@pytest.mark.parametrize("value, text", [
    (np.float32(0.1), "0.1"), (np.float32(1), "1"), (np.float64(1e6), "1000000"),
    (np.float32(-0.0), "-0"), (np.float32(1e-7), "1e-07"), (np.float64(1e20), "1e+20"),
    (np.float32(np.inf), "INF"), (np.float16(np.nan), "NaN"), (np.int8(-3), "-3"), (True, "1")])
def test_numbers_as_text(value: Any, text: str) -> None:
    assert o.cast(np.asarray(value), dtype=dtypes.string).tolist() == text


def test_numbers_survive_being_text() -> None:
    rng = np.random.default_rng(0)
    for kind in (np.float16, np.float32, np.float64):
        x = (rng.standard_normal(200) * 10.0 ** rng.integers(-6, 5, 200)).astype(kind)
        back = o.cast(o.cast(x, dtype=dtypes.string), dtype=dtypes.of_numpy(x.dtype))
        np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("text, to", [("pear", "f32"), ("", "i32"), ("300", "u8"), ("-1", "u64"),
                                      ("1e400", "i64"), ("inf", "i32"), ("9" * 30, "i64")])
def test_text_that_says_no_such_number(text: str, to: str) -> None:
    with pytest.raises(InputError) as caught:
        o.cast(words(text), dtype=dtypes.dtype(to))
    assert caught.value.code == "GT0506"


def test_pieces_and_their_number() -> None:
    pieces, count = o.string_split(words("a  b c", "", " d "), size=3)
    assert pieces.tolist() == [["a", "b", "c"], ["", "", ""], ["d", "", ""]]
    assert count.tolist() == [3, 0, 1]


@pytest.mark.parametrize("fn", [
    lambda x: o.string_normalize(x, size=1, case="TITLE"), lambda x: o.regex_match(x, pattern="("),
    lambda x: o.add(x, x), lambda x: o.string_concat(x, np.zeros(2)), o.exp,
    lambda x: o.reduce_max(x, axes=(0,)), lambda x: o.select(np.array(True), x, 1.0)])
def test_what_strings_are_not_taken_by(fn: Any) -> None:
    from graphtool.ir.trace import trace
    with pytest.raises(TypeMismatch):
        trace(fn, [TensorType(dtypes.string, (2,))])


def test_arrays_that_hold_no_strings() -> None:
    for bad in (np.array([1, "a"], object), np.zeros(2)):
        with pytest.raises(InputError, match="GT0303"):
            dtypes.as_strings(bad)
    assert dtypes.as_strings(np.array([b"\xc3\xa9", "e"], object)).tolist() == ["é", "e"]


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "JPEG2000"])
def test_pictures_that_lose_something(kind: str) -> None:
    x = picture(kind)
    height, width, channels = o.image_shape(x).tolist()
    got = o.decode_image(x, shape=(height, width, channels))
    assert got.shape == (3, 4, 3) and got.dtype == np.uint8


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedError, match=r"\[images\]") as caught:
        o.image_shape(np.zeros(3, np.uint8))
    assert caught.value.code == "GT0509" and strings.CHANNELS["RGB"] == 3
