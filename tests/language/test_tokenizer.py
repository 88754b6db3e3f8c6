"""The tokenizer: any bytes come back, training is repeatable, files are checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphtool.errors import GraphtoolError, InputError
from graphtool.language import tokenizer
from graphtool.language.tokenizer import Tokenizer, pieces
from tests.cli.conftest import Cli, gt

__all__ = ["gt"]
TEXT = "the cat sat on the mat, the hat; 12 + 120 = 132\n\n  the end is near the start\n" * 3
MADE = tokenizer.train(TEXT, 300)


@given(st.binary(max_size=200))
def test_any_bytes_come_back(data: bytes) -> None:
    assert MADE.decode(MADE.encode(data)) == data
    assert b"".join(pieces(data)) == data


def test_words_keep_the_space_before_them() -> None:
    assert list(pieces(b"a  b12 c,\n d ")) == [b"a", b" ", b" b", b"12", b" c", b",", b"\n", b" d",
                                               b" "]


def test_frequent_pairs_are_joined() -> None:
    assert len(MADE.encode("the the")) == 2
    assert len(MADE.encode(TEXT)) < len(TEXT) / 2


def test_no_merge_crosses_a_piece() -> None:
    assert all(len(list(pieces(s))) == 1 for s in MADE.spelt[256:-1])


def test_training_is_repeatable_and_stops_where_nothing_repeats() -> None:
    assert tokenizer.train(TEXT, 300) == MADE
    assert tokenizer.train("abc", 1000).merges == ()


def test_the_earliest_merge_wins() -> None:
    made = Tokenizer(((98, 99), (97, 98)))
    assert made.encode("abc") == [97, 256]
    assert made.encode("ab") == [257]


def test_a_file_comes_back(tmp_path: Path) -> None:
    tokenizer.save(MADE, tmp_path / "t.json")
    assert tokenizer.load(tmp_path / "t.json") == MADE


@pytest.mark.parametrize("text", [
    "", "[]", '{"format": "graphtool/tokenizer", "version": 2, "merges": []}',
    '{"format": "graphtool/tokenizer", "version": 1}',
    '{"format": "graphtool/tokenizer", "version": 1, "merges": [[0, 256]]}',
    '{"format": "graphtool/tokenizer", "version": 1, "merges": [[0, true]]}',
    '{"format": "graphtool/tokenizer", "version": 1, "merges": [[0, 1, 2]]}'])
def test_a_broken_file_is_refused(text: str, tmp_path: Path, gt: Cli) -> None:
    (tmp_path / "t.json").write_text(text)
    found = gt("tokenizer", "encode", tmp_path / "t.json", "a")
    assert found.code == 3 and "GT3152" in found.err


@pytest.mark.parametrize("token", [-1, MADE.size])
def test_no_token_is_an_error(token: int) -> None:
    with pytest.raises(GraphtoolError, match="is no token"):
        MADE.decode([token])


def test_the_verbs(tmp_path: Path, gt: Cli) -> None:
    (tmp_path / "text").write_text(TEXT)
    train = ("tokenizer", "train", tmp_path / "text", "-o", tmp_path / "t", "--size")
    assert [gt(*train, size).code for size in (256, 300)] == [2, 0]
    found = gt("tokenizer", "encode", tmp_path / "t", "the hat")
    assert found.out.split() == [str(t) for t in MADE.encode("the hat")]
    assert gt("tokenizer", "decode", tmp_path / "t", *found.out.split()).out == "the hat\n"


@pytest.mark.parametrize("text", [
    [[97, 97], *([255 + i, 255 + i] for i in range(1, 60))],  # twice as long each time: 2**60 bytes
    [[97, 97], *([255 + i, 97] for i in range(1, 20_000))]], ids=["doubling", "growing"])
def test_merges_that_ask_for_more_than_there_is_are_refused(text: list[list[int]], tmp_path: Path
                                                            ) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"format": tokenizer.FORMAT, "version": 1, "merges": text}))
    with pytest.raises(InputError, match="64 MiB") as error:
        tokenizer.load(path)
    assert error.value.code == "GT3152"
    path.write_text("[" * 100_000)
    with pytest.raises(InputError) as error:
        tokenizer.load(path)
    assert error.value.code == "GT3152"
