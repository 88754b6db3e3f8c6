"""One loaded model in several threads: every result is right, from Python and from C."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import ops as o
from graphtool.cli.faults import run
from graphtool.native import runtime
from tests.passes.pass_samples import module, values

THREADS, RUNS = 4, 300


def busy(x: Any) -> Any:
    """Several buffers in the arena, and work enough to be interrupted in."""
    y = o.tanh(o.matmul(x, values(x, 24, 300)))
    z = o.matmul(o.reduce_sum(y, axes=(0,)) * y, values(x, 300, 24, seed=1))
    return o.softmax(z, axis=1), o.reduce_max(y, axes=(1,))


def shared(x: Any) -> Any:
    """Products, rows and sums whose work threads divide."""
    y = o.tanh(o.matmul(x, values(x, 24, 300)))
    return (o.softmax(o.matmul(y, values(x, 300, 24, seed=1)), axis=1), o.reduce_max(y, axes=(1,)),
            o.reduce_sum(y * y, axes=(0,)))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graphtool.build(module(busy, "f32[B,24]"), tmp_path_factory.mktemp("b") / "b")


@pytest.mark.parametrize("threads", [1, 2])
def test_a_model_runs_in_several_threads_at_once(built: Path, threads: int) -> None:
    model = runtime.load(built, threads)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((1 + n % 8, 24)).astype(np.float32) for n in range(16)]
    want = [model.run({"x0": x}) for x in inputs]

    def wrong(thread: int) -> int:
        count = 0
        for n in range(RUNS):
            which = (n * 7 + thread * 5) % len(inputs)
            got = model.run({"x0": inputs[which]})
            count += any(not np.array_equal(got[k], v) for k, v in want[which].items())
        return count
    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(wrong, range(THREADS))) == 0


@pytest.mark.parametrize("precision", ["default", "strict"])
def test_more_threads_than_processors(tmp_path: Path, precision: str) -> None:
    """A build is for the number of threads that is stated, whatever this machine has."""
    m = module(shared, "f32[1000,24]")
    path = graphtool.build(m, tmp_path / "b", threads=13, precision=precision)
    x = np.random.default_rng(0).standard_normal((1000, 24)).astype(np.float32)
    want = graphtool.evaluate(m, {"x0": x})
    assert runtime.load(path).manifest.threads.most == 13
    for threads in (1, 2, 7, 13, 40):
        got = runtime.load(path, threads).run({"x0": x})
        for k, v in want.items():
            np.testing.assert_allclose(got[k], v, rtol=2e-4, atol=2e-5)


def test_a_run_says_that_the_build_is_for_fewer_threads(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = graphtool.build(module(busy, "f32[B,24]"), tmp_path / "few", threads=1)
    assert run(["run", str(few), "--random", "--dim", "B=8", "--threads", "3"]) == 0
    assert "this build uses 1 of 3 threads: build it with --threads 3" in capsys.readouterr().err
    assert run(["run", str(few), "--random", "--dim", "B=8", "--threads", "1"]) == 0
    assert not capsys.readouterr().err
    tiny = graphtool.build(module(o.relu, "f32[4]"), tmp_path / "tiny", threads=1)
    assert run(["run", str(tiny), "--random", "--threads", "3"]) == 0
    assert not capsys.readouterr().err


def test_a_run_that_fails_gives_its_memory_back(built: Path) -> None:
    model = runtime.load(built, 1)
    for _ in range(3):
        with pytest.raises(graphtool.InputError):
            model.run({"x0": np.zeros((9, 24), np.float32)})
    assert len(model._free) == 1


def test_runs_of_c_threads_share_nothing(built: Path, tmp_path: Path) -> None:
    """Threads that share the weights alone, watched by TSan where gcc has it."""
    shutil.copytree(built, tmp_path / "b")
    (tmp_path / "b" / "model_example.c").unlink()
    (tmp_path / "b" / "user.c").write_text(USER)
    for watched in ("-fsanitize=thread", "-O1"):
        done = subprocess.run(["gcc", watched, "-g", *sorted(
            p.name for p in (tmp_path / "b").glob("*.c")), "-lm", "-lpthread", "-o", "user"],
            cwd=tmp_path / "b", capture_output=True, text=True)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr[:2000]
    ran = subprocess.run(["./user"], cwd=tmp_path / "b", capture_output=True, text=True)
    if "unexpected memory mapping" in ran.stderr:
        pytest.skip("TSan does not run on this kernel")
    assert ran.returncode == 0 and not ran.stdout, ran.stdout + ran.stderr[:2000]


USER = """
#include "model.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static model_weights weights;
static float first[8 * 24 + 8];
static void *work(void *p)
{
    const int64_t dims[] = {8};
    void *arena = aligned_alloc(64, model_arena_bytes(dims));
    float *x = calloc(1, MODEL_INPUT0_BYTES(dims)), out[8 * 24], top[8];
    for (int i = 0; i < 8 * 24; i++) x[i] = (float)(i % 7) * 0.1f;
    const void *const inputs[] = {x};
    void *const outputs[] = {out, top};
    for (int n = 0; n < 50; n++) {
        memset(out, 0, sizeof out);
        if (model_run(weights.data, arena, dims, inputs, outputs, 1)) return "failed";
        if (!p) memcpy(first, out, sizeof out);
        else if (memcmp(first, out, sizeof out)) return "wrong";
    }
    free(x), free(arena);
    return NULL;
}
int main(void)
{
    pthread_t threads[4];
    if (model_load(&weights, "model.safetensors") || work(NULL)) return 1;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, &threads[i]);
    for (int i = 0; i < 4; i++) {
        void *said;
        pthread_join(threads[i], &said);
        if (said) puts(said);
    }
    model_free(&weights);
    return 0;
}
"""
