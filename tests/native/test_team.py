"""team.h and runtime.h in a C program of their own: every piece is done once, in time, however many
threads and callers there are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import build
from graphtool import ops as o
from graphtool.kernels import headers
from tests.passes.pass_samples import module, values

USER = """
#include "runtime.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 40, MOST = 7, EACH = 5, CALLERS = 4, RUNS = 60 };
typedef struct {
    int threads;
    int done[STEPS][MOST * EACH]; /* how often each piece was done */
    int sum, seen[MOST], wrong[MOST];
    int loose; /* no thread reads anything between steps */
    size_t room;      /* bytes of memory of each thread */
    char first[1000]; /* that of the first one */
} table;

static void piece(table *s, int step, gt_worker *w)
{
    s->done[step][w->piece]++;
    char *const work = gt_work(w, s->first);
    memset(work, w->thread, s->room);
    if (s->room && (work[0] != w->thread || work[s->room - 1] != w->thread)) s->sum = -1000;
    if (step && s->done[step - 1][0] != 1) s->done[step][0] = -1000; /* the step before is done */
    if (step == STEPS - 1 && w->thread) usleep(200); /* the caller is asleep by then */
}

/* Two phases of a kernel: in the second one, all shares of the first are done. */
static void phases(table *s, gt_worker *w)
{
    int p;
    GT_EACH(w, p) s->seen[p] = w->threads;
    gt_barrier(w);
    GT_EACH(w, p)
    for (int i = 0; i < w->threads; i++)
        if (s->seen[i] != w->threads) s->wrong[p] = 1;
}

static void body(const void *state, gt_worker *w)
{
    table *s = *(table *const *)state;
    const int loose = s->loose;
    if (loose) gt_loosen(w);
    for (int i = 0; i < STEPS; i++) {
        if (i % 8 == 5) GT_STEP(i, STEPS, gt_begin(w, 1, 1), piece(s, i, w));
        else GT_STEP(i, STEPS, gt_begin(w, w->threads, 1 + i % EACH), piece(s, i, w));
        if (i == STEPS - 1) break; /* nothing waits behind the last step */
        gt_barrier(w);
        if (i % 10 == 3) {
            GT_PHASED(0, 0, phases(s, w));
            gt_barrier(w);
        }
        if (i % 10 == 7 && !loose) { /* a flag that is overwritten next is read by all before */
            const int on = s->sum;
            gt_meet(w);
            if (on != i / 10) return;
            GT_STEP(0, 0, gt_begin(w, 1, 1), s->sum++);
            gt_barrier(w);
        }
    }
}

/* The number of faults in a run of so many threads. */
static int run(table *s, int threads, int loose)
{
    int wrong = 0;
    memset(s, 0, sizeof *s);
    s->loose = loose;
    s->room = loose ? 0 : (size_t)threads * 100; /* more than in the run before, or less */
    gt_run(body, &s, threads, s->room);
    const int all = GT_THREADS ? threads : 1;
    for (int i = 0; i < STEPS; i++) {
        const int pieces = all == 1 || i % 8 == 5 ? 1 : all * (1 + i % EACH);
        for (int p = 0; p < MOST * EACH; p++) wrong += s->done[i][p] != (p < pieces);
    }
    for (int t = 0; t < all; t++) wrong += s->wrong[t] || s->seen[t] != all;
    return wrong + (s->sum != (loose ? 0 : STEPS / 10));
}

static void *caller(void *p)
{
    static table tables[CALLERS];
    const int counts[] = {1, 2, 3, 7};
    long wrong = 0;
    for (int i = 0; i < RUNS; i++)
        wrong += run(&tables[(long)p], counts[(i + (long)p) % 4], i / 4 % 2);
    return (void *)wrong;
}

int main(void)
{
    long wrong = 0;
    for (long rounds = 0; rounds < 2; rounds++) {
#if GT_THREADS
        pthread_t callers[CALLERS];
        void *found;
        for (long i = 0; i < CALLERS; i++) pthread_create(&callers[i], 0, caller, (void *)i);
        for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], &found), wrong += (long)found;
#endif
        wrong += (long)caller(0);
        if (rounds) break;
        const pid_t child = FORKS ? fork() : 1;
        if (!child) _exit(caller(0) ? 9 : 0);
        int status = 0;
        if (FORKS) waitpid(child, &status, 0);
        wrong += status;
    }
    printf("%ld\\n", wrong);
    return 0;
}
"""
LOOKS = {"plain": ("-O2", "-fopenmp", "-DFORKS=1"), "alone": ("-O2", "-DFORKS=1"),
         "posix": ("-O2", "-DGT_THREADS=1", "-DFORKS=1"),
         "asleep": ("-O2", "-fopenmp", "-DFORKS=1"),
         "tsan": ("-O1", "-fopenmp", "-fsanitize=thread", "-DFORKS=0"),
         "asan": ("-O1", "-fopenmp", "-fsanitize=address,undefined", "-DFORKS=1")}


@pytest.mark.part(2)
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("look", LOOKS)
def test_every_piece_is_done_once(look: str, cc: str, tmp_path: Path) -> None:
    if shutil.which(cc) is None:
        pytest.skip(f"{cc} is not installed")
    for name in ("compiler.h", "processors.h", "threads.h", "team.h", "teams.h", "marks.h",
                 "arguments.h", "runtime.h"):
        (tmp_path / name).write_text(headers.text(name) or "")
    (tmp_path / "user.c").write_text(USER)
    done = subprocess.run([cc, *LOOKS[look], "-Wall", "-Wextra", "-g", "user.c", "-o", "user",
                           "-lpthread"], cwd=tmp_path, capture_output=True, text=True)
    if done.returncode and ("sanitize" in " ".join(LOOKS[look]) or cc == "clang"):
        pytest.skip(done.stderr[-300:])
    assert done.returncode == 0 and not done.stderr, done.stderr[:2000]
    env = {"OMP_WAIT_POLICY": "passive"} if look == "asleep" else {}
    ran = subprocess.run(["./user"], cwd=tmp_path, capture_output=True, text=True, env=env,
                         timeout=300)
    if "unexpected memory mapping" in ran.stderr:
        pytest.skip("TSan does not run on this kernel")
    assert (ran.returncode, ran.stdout) == (0, "0\n"), ran.stdout + ran.stderr[:2000]


UNLOADED = """
import sys, _ctypes, numpy, graphtool
model = graphtool.load(sys.argv[1], threads=2)
model(x0=numpy.ones((256, 512), "f4"))
_ctypes.dlclose(model.library._handle)
"""


def test_the_threads_of_a_library_end_before_it_is_unloaded(tmp_path: Path) -> None:
    built = build(module(lambda x: o.matmul(x, values(x, 512, 512)), "f32[256,512]"),
                  tmp_path / "b")
    subprocess.run([sys.executable, "-c", UNLOADED, str(built)], check=True, timeout=300)


LATE = """
#include "team.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* all threads but the first are late, until the run has ended and its memory is overwritten */
#define GT_LOOSEN(w) (gt_loosen(w), (w)->thread ? usleep(20000) : 0)
#include "model.c"

/* One run, from memory that is gone when it returns. */
__attribute__((noinline)) static int run(const void *weights, void *arena, const float *x, float *y)
{
    const int64_t dims[1] = {0};
    const void *const inputs[] = {x};
    void *const outputs[] = {y, y + MODEL_OUTPUT0_COUNT, y + 2 * MODEL_OUTPUT0_COUNT};
    return model_run(weights, arena, dims, inputs, outputs, 3);
}

__attribute__((noinline)) static void overwrite(void)
{
    volatile uint64_t junk[4096];
    for (int i = 0; i < 4096; i++) junk[i] = 0x1111111111111110u;
}

int main(void)
{
    model_weights weights;
    if (model_load(&weights, "model.safetensors")) return 2;
    void *arena = aligned_alloc(64, model_arena_bytes(0));
    float *x = aligned_alloc(64, MODEL_INPUT0_BYTES + 64);
    float *y = aligned_alloc(64, 3 * MODEL_OUTPUT0_BYTES + 64);
    for (int i = 0; i < MODEL_INPUT0_COUNT; i++) x[i] = (float)(i % 7) * 0.1f;
    for (int i = 0; i < 5; i++) {
        if (run(weights.data, arena, x, y)) return 3;
        overwrite();
    }
    usleep(100000);
    for (int i = 0; i < MODEL_OUTPUT0_COUNT; i++) printf("%a\\n", (double)y[i]);
    return 0;
}
"""


def lstm(x: Any) -> Any:
    return o.lstm(x, values(x, 1, 1024, 32) * 0.1, values(x, 1, 1024, 256) * 0.05,
                  values(x, 1, 2048) * 0.1)


def test_a_late_thread_reads_nothing_of_a_run_that_has_ended(tmp_path: Path) -> None:
    """All threads enter a recurrence, the late ones too, which then find nothing to do."""
    built = build(module(lstm, "f32[50,4,32]"), tmp_path / "b", name="model")
    assert "GT_PHASED" in (built / "model.c").read_text()
    (built / "late.c").write_text(LATE)
    sources = ["late.c", "model_load.c", *(p.name for p in built.glob("model_kernels*.c"))]
    subprocess.run(["cc", "-O2", "-fopenmp", *sources, "-lm", "-o", "late"], cwd=built, check=True)
    done = subprocess.run(["./late"], cwd=built, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    x = (np.arange(50 * 4 * 32) % 7).astype(np.float32) * np.float32(0.1)
    (want, *_) = graphtool.load(built, threads=1)(x0=x.reshape(50, 4, 32)).values()
    got = [float.fromhex(v) for v in done.stdout.split()]
    np.testing.assert_allclose(got, want.reshape(-1), rtol=1e-4, atol=1e-5)
