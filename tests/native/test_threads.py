"""One loaded model in several threads: every result is right, from Python and from C."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import ops as o
from graphtool.cli.faults import run
from graphtool.cli.processors import shortage
from graphtool.io.manifest_rows import ThreadsRow
from graphtool.native import runtime
from graphtool.target.record import MOST_THREADS
from tests.passes.pass_samples import module, values

THREADS, RUNS = 4, 300


def busy(x: Any) -> Any:
    """Several buffers in the arena, and work enough to be interrupted in."""
    y = o.tanh(o.matmul(x, values(x, 24, 300)))
    z = o.matmul(o.reduce_sum(y, axes=(0,)) * y, values(x, 300, 24, seed=1))
    return o.softmax(z, axis=1), o.reduce_max(y, axes=(1,))


def shared(x: Any) -> Any:
    """Work that threads divide: rows, sums, and kernels that need memory for each thread."""
    image = o.conv(x, values(x, 32, 32, 3, 3) * 0.1, padding=((1, 1), (1, 1)))
    steps = o.lstm(o.reshape(x, shape=(32, 8, 1024)), values(x, 1, 512, 1024) * 0.03,
                   values(x, 1, 512, 128) * 0.05, values(x, 1, 1024) * 0.1)[0]
    sums = o.reduce_sum(x * x, axes=(0,))
    return o.sort(image, axis=3)[0], o.softmax(image, axis=1), sums, steps


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
    """A build is for as many as there may be anywhere, whatever this machine has."""
    m = module(shared, "f32[8,32,32,32]")
    path = graphtool.build(m, tmp_path / "b", precision=precision)
    x = np.random.default_rng(0).standard_normal((8, 32, 32, 32)).astype(np.float32)
    want = graphtool.evaluate(m, {"x0": x})
    model = runtime.load(path)
    row = model.manifest.threads
    assert row.most == MOST_THREADS and row.work > 63 * row.least and row.memory > 0
    for model.threads in (1, 2, 3, 8, 64):
        got = model.run({"x0": x})
        for k, v in want.items():
            np.testing.assert_allclose(got[k], v, rtol=2e-4, atol=1e-4)
            if precision == "strict":
                want[k] = got[k]  # the next run is compared with this one
                assert model.threads == 1 or np.array_equal(got[k], v)


ONE_CORE = """
import os, sys, graphtool
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
graphtool.build(graphtool.read(sys.argv[1]), sys.argv[2], jobs=1)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinities")
def test_a_build_on_one_core_runs_on_two(tmp_path: Path) -> None:
    m = module(lambda x: o.matmul(x, values(x, 512, 512)), "f32[512,512]")
    graphtool.write(m, tmp_path / "m.graph.json")
    subprocess.run([sys.executable, "-c", ONE_CORE, tmp_path / "m.graph.json", tmp_path / "b"],
                   check=True)
    model = runtime.load(tmp_path / "b", 2)
    assert model.manifest.threads.most == MOST_THREADS
    x = np.ones((512, 512), np.float32)
    before = thread_count()
    model.run({"x0": x})
    assert thread_count() == before + 1


def thread_count() -> int:
    """The threads of this process."""
    return len(os.listdir("/proc/self/task"))


def test_the_arena_is_that_of_one_thread(tmp_path: Path) -> None:
    """Further threads have memory of their own."""
    m = module(lambda x: o.sort(x, axis=1)[0], "f32[B,500]")
    many, one = (graphtool.build(m, tmp_path / str(n), threads=n) for n in (64, 1))
    many, one = (runtime.load(path).manifest for path in (many, one))
    assert many.arena == one.arena == 8000 and many.threads.memory == 8000
    assert one.threads.most == 1 and one.threads.memory == 0


def test_a_run_says_that_the_build_is_for_fewer_threads(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = graphtool.build(module(busy, "f32[B,24]"), tmp_path / "few", threads=1)
    assert run(["run", str(few), "--random", "--dim", "B=8", "--threads", "3"]) == 0
    said = capsys.readouterr().err
    assert "this build uses 1 of 3 threads: build it with --threads 3, or without" in said
    assert run(["run", str(few), "--random", "--dim", "B=8", "--threads", "1"]) == 0
    assert not capsys.readouterr().err
    tiny = graphtool.build(module(o.relu, "f32[4]"), tmp_path / "tiny", threads=1)
    assert run(["run", str(tiny), "--random", "--threads", "3"]) == 0
    assert not capsys.readouterr().err


def row(most: int, work: int, by: str = "pool") -> Any:
    """What of build.json decides about threads."""
    return SimpleNamespace(device="", steps=[SimpleNamespace(serial=False)],
                           threads=ThreadsRow(most, work, 10, by=by))


@pytest.mark.parametrize(("m", "threads", "allowed", "processors", "says"), [
    (row(256, 1000), None, 2, 2, ""),
    (row(256, 5), None, 2, 64, ""),
    (row(256, 1000), None, 2, 64, "the run uses 2 processors of the machine's 64: the process may"),
    (row(256, 1000), 2, 2, 64, ""),
    (row(256, 1000), 8, 2, 64, "8 threads share 2 processors: the process may use no more"),
    (row(256, 1000), 8, 4, 4, "8 threads share the 4 processors of this machine"),
    (row(4, 1000), None, 8, 8, "this build uses 4 of 8 threads: build it with --threads 8, or"),
    (row(1, 1000, "none"), None, 8, 8, "this build uses 1 of 8 threads: build it without --"),
    (row(1, 1000, "caller"), 2, 8, 8, "this build uses 1 of 2 threads: build it without --")])
def test_what_a_run_says_about_its_threads(m: Any, threads: int | None, allowed: int,
                                           processors: int, says: str) -> None:
    said = shortage(m, threads, allowed, processors)
    assert said.startswith(says) and bool(said) == bool(says)


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
