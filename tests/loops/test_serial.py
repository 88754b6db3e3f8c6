"""The program file: bytes survive a round trip, so does the C, and no damage gives a traceback."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphtool.dtypes import float32
from graphtool.emit.c import emit
from graphtool.errors import InputError
from graphtool.ir import serial as graphs
from graphtool.loops import serial, walk
from graphtool.loops.ir import Apply, Const, Expr, Store
from tests.loops.programs import NAMES, optimised, program, store

each = pytest.mark.parametrize("name", NAMES)


@each
def test_read_write_is_the_identity(name: str) -> None:
    text = serial.dumps(program(name))
    assert serial.dumps(serial.loads(text)) == text


@each
def test_the_c_is_the_same(name: str) -> None:
    assert emit(serial.loads(serial.dumps(program(name)))) == emit(program(name))


@each
def test_save_and_load_with_weights(name: str, tmp_path: Path) -> None:
    p = program(name)
    serial.save(p, tmp_path / "m.program.json", store(name))
    loaded, weights = serial.load(tmp_path / "m.program.json")
    assert serial.dumps(loaded) == serial.dumps(p)
    assert {d for _, d in p.weights} <= set(weights)
    assert (tmp_path / "m.program.safetensors").exists() == bool(p.weights)


def test_shared_expressions_stay_shared() -> None:
    p = program(NAMES[0])
    kernel = next(k for k in p.kernels if any(q.const for q in k.params)
                  and any(not q.const and q.dtype is float32 for q in k.params))
    out = next(q for q in kernel.params if not q.const)
    x: Expr = Const(1.0, float32)
    for _ in range(60):  # written out this would be 2⁶⁰ constants
        x = Apply("add", (x, x), float32)
    body = (Store(out.name, 0, x),)
    text = serial.dumps(replace(p, kernels=tuple(
        replace(k, body=body) if k is kernel else k for k in p.kernels)))
    again = next(k for k in serial.loads(text).kernels if k.name == kernel.name)
    assert sum(isinstance(e, Apply) for s in again.body for e in walk.each(walk.values(s))) == 60
    assert again.body == body  # the same objects


@pytest.mark.parametrize(("text", "code"), [
    (lambda: graphs.dumps(optimised(NAMES[0]), "x"), "GT0360"), (lambda: "[]", "GT0360"),
    (lambda: "{", "GT0331"), (lambda: _edit('"version": 1', '"version": 9'), "GT0334"),
    (lambda: _edit('"threads": 2', '"threads": "two"'), "GT0362"),
    (lambda: _edit('"do": "store"', '"do": "erase"'), "GT0362"),
    (lambda: _edit('"space": "output"', '"space": "moon"'), "GT0363")])
def test_a_wrong_artifact_is_named(text: Any, code: str) -> None:
    with pytest.raises(InputError) as found:
        serial.loads(text())
    assert found.value.code == code


def test_a_missing_weight_is_an_error(tmp_path: Path) -> None:
    name = next(n for n in NAMES if program(n).weights)
    with pytest.raises(InputError, match="of the program are missing") as found:
        serial.save(program(name), tmp_path / "m.program.json", {})
    assert found.value.code == "GT0367"


@pytest.mark.parametrize("outside", ["../w.safetensors", "..", "/etc/passwd", "a\\\\b"])
def test_weights_lie_beside(outside: str, tmp_path: Path) -> None:
    name = next(n for n in NAMES if program(n).weights)
    path = tmp_path / "m.program.json"
    path.write_text(serial.dumps(program(name), outside))
    with pytest.raises(InputError) as found:
        serial.load(path)
    assert found.value.code == "GT0343"


def _edit(old: str, new: str) -> str:
    text = serial.dumps(program(NAMES[0]))
    assert old in text
    return text.replace(old, new, 1)


@each
def test_no_truncation_gives_a_traceback(name: str) -> None:
    text = serial.dumps(program(name))
    for end in range(0, len(text) - 2, max(1, len(text) // 60)):
        with pytest.raises(InputError):
            serial.loads(text[:end])


def test_no_edit_gives_a_traceback() -> None:
    """Words and numbers exchanged, doubled, dropped: an InputError, or a program that emits C."""
    rng = random.Random(7)
    for name in NAMES:
        text = serial.dumps(program(name))
        words = sorted(set(text.replace('"', " ").replace(",", " ").split()))
        for _ in range(60):
            at = rng.randrange(len(text))
            word = rng.choice(words)
            end = at + rng.choice([0, 1, len(word)])
            try:
                emit(serial.loads(text[:at] + word + text[end:]))
            except InputError:
                continue
