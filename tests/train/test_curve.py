"""The picture of a log: round ticks, names of axes, a legend, and the same bytes from C."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool.train.curve import draw, step_of

HOST = Path(graphtool.__file__).parent / "kernels" / "c" / "host"
MAIN = '''#include "curve.h"
int main(int n, char **v) { return n != 3 || curve_draw(v[1], v[2]); }
'''


def log(path: Path, losses: list[float],
        epochs: Sequence[tuple[float, float]] = ()) -> Path:
    """A log.jsonl of steps, and of epochs as (training, validation)."""
    rows = [{"step": i, "epoch": 0, "loss": v} for i, v in enumerate(losses)]
    rows += [{"epoch": i, "steps": (i + 1) * len(losses) // len(epochs), "train_loss": a,
              "val_loss": b} for i, (a, b) in enumerate(epochs)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


LOGS = {"nothing": ([], []), "one": ([2.5], []), "zero": ([0.0] * 9, []),
        "down": ([2.51 / (1 + i / 30) for i in range(300)], [(1.4, 1.3), (0.7, 0.8)]),
        "below": ([0.3 - i / 700 for i in range(2400)], [(-1.0, -0.9)]),
        "small": ([3e-7 / (i + 1) for i in range(7)], []), "large": ([7e35, 1.0, 3e20], []),
        **{f"random{i}": (list(np.random.default_rng(i).gamma(1, 10.0**(i - 4), 37 * i)),
                          [(float(i), i / 7)] * i) for i in range(1, 9)}}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("curve")
    (at / "main.c").write_text(MAIN)
    subprocess.run(["cc", "-O2", "-march=native", "-Wall", "-Werror", "-Wno-unused-function",
                    "-D_GNU_SOURCE", f"-I{HOST}", at / "main.c", "-o", at / "curve", "-lm"],
                   check=True)
    return at / "curve"


@pytest.mark.parametrize("name", LOGS)
def test_the_same_bytes_from_c(program: Path, name: str, tmp_path: Path) -> None:
    at = log(tmp_path / "log.jsonl", *LOGS[name])
    subprocess.run([program, at, tmp_path / "c.svg"], check=True)
    assert (tmp_path / "c.svg").read_text() == draw(at)


@pytest.mark.parametrize("name", LOGS)
def test_ticks_are_round(name: str, tmp_path: Path) -> None:
    texts = re.findall(r">([-+.e\d]+)</text>", draw(log(tmp_path / "log.jsonl", *LOGS[name])))
    assert len(texts) >= 4
    assert all(len(str(int(t.split("e")[0].replace(".", ""))).strip("-0")) <= 2 for t in texts)


@pytest.mark.parametrize("span, most, step", [
    (2.51, 5, 1.0), (1.0, 5, 0.2), (0.99, 5, 0.2), (300, 8, 50.0), (2e-7, 5, 5e-8), (7, 8, 1.0),
    (float("inf"), 5, 5e307)])
def test_the_step_from_tick_to_tick(span: float, most: int, step: float) -> None:
    assert step_of(span, most) == step


def test_axes_have_names_and_several_lines_a_legend(tmp_path: Path) -> None:
    one = draw(log(tmp_path / "log.jsonl", [3.0, 2.0]))
    assert ">step</text>" in one and ">loss</text>" in one and "each step" not in one
    three = draw(log(tmp_path / "log.jsonl", [3.0, 2.0], [(2.5, 2.6)]))
    assert all(f">{n}</text>" in three for n in ("each step", "training, each epoch", "validation"))
    assert three.count("<circle") == 2  # lines of one point
