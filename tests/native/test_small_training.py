"""Training on a microcontroller: the head of a network whose body stays in integers of 8 bits, with
the same bits on an emulated board as on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import Recipe
from graphtool.compile.build import emit
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.native import board
from graphtool.transforms.quantising import Quantisation
from tests.compilers import run_compiler
from tests.native.small_targets import available

pytestmark = pytest.mark.compiled
SAMPLES = Path(__file__).parents[2] / "samples"
STEPS = 8
MAIN = """\
#include "digits.h"
#ifdef __arm__
void board_write(const char *text);
#else
#include <stdio.h>
static void board_write(const char *text) {{ fputs(text, stdout); }}
#endif
static const float images[][64] = {{{images}}};
static const int64_t labels[] = {{{labels}}};
static _Alignas(64) char state[DIGITS_STATE_BYTES], arena[DIGITS_ARENA_BYTES];

static void put(const void *given, size_t count)
{{
    for (const uint8_t *x = given; count--; x++) {{
        const char text[] = {{"0123456789abcdef"[*x >> 4], "0123456789abcdef"[*x & 15], 0}};
        board_write(text);
    }}
    board_write("\\n");
}}

int main(void)
{{
    float logits[10], loss;
    digits_init(state, arena, 1);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {{
        digits_step(state, arena, images[i], labels + i, 0.01f, &loss, 1);
        put(&loss, sizeof loss);
    }}
    digits_predict(state, arena, images[0], logits, 1);
    put(logits, sizeof logits);
    put(state, sizeof state);
    return 0;
}}
"""


def test_a_head_is_trained_on_a_body_of_bytes(tmp_path: Path) -> None:
    """The body has kernels of bytes, weights stand there once, and all bits are equal."""
    train = np.load(SAMPLES / "digits_train.npz")
    model = graphtool.import_model(SAMPLES / "digits.onnx", dynamic={"batch": (1, 1)})
    small = graphtool.quantise(model, Quantisation(("static",), stored=True, skip=("head.weight",)),
                               {"image": train["image"][:64]})
    step = graphtool.grad(small, Recipe("cross_entropy", ("head.*",), "sgd"))
    how = Build(target="cortex-m7")
    emit(unit_of(Source(step), how, "digits"), tmp_path, how)
    kernels = (tmp_path / "digits_step_kernels0.c").read_text()
    assert kernels.count('#include "conv_bytes.h"') == 3 and "conv_direct" not in kernels
    assert [p.name for p in tmp_path.glob("*weights*")] == ["digits_weights0.c"]
    (tmp_path / "main.c").write_text(MAIN.format(
        images=",".join(f"{{{','.join(map(str, x.reshape(-1)))}}}" for x in train["image"][:STEPS]),
        labels=",".join(map(str, train["y"][:STEPS]))))
    sources = sorted(p.name for p in tmp_path.glob("*.c") if "example" not in p.name)
    run_compiler(["cc", "-std=c11", "-O2", "-fwrapv", "-ffp-contract=off", *sources, "-lm", "-o",
                  "here"], tmp_path).check_returncode()
    here = subprocess.run([tmp_path / "here"], check=True, capture_output=True, text=True).stdout
    losses = [np.frombuffer(bytes.fromhex(line), "<f4")[0] for line in here.split("\n")[:STEPS]]
    state = {"step": np.zeros((), np.int64), **{
        list(step.inputs)[i]: w.source for i, w in step.initial.items()}}
    wanted = []
    for i in range(STEPS):
        got = graphtool.evaluate(step, {"image": train["image"][i:i + 1], "y": train["y"][i:i + 1],
                                        "lr": np.float32(0.01), **state})
        wanted.append(got["loss"])
        state = {list(step.inputs)[i]: got[step.output_names[out]] for out, i in step.donations}
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    if why := available("cortex-m7"):
        pytest.skip(why)
    assert board.run(tmp_path, sources, "cortex-m7") == here
