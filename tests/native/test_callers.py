"""Runs on threads of the caller's: the same bits as alone, whatever order its pool runs the parts
in; a pool that leaves some out is a status. Training steps and levels of a processor take a pool
too."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import graphtool
from graphtool import ops as o
from graphtool.emit.entries import dispatcher
from graphtool.errors import UsageError
from graphtool.symbolic import symbol
from tests.passes.pass_samples import module, values

USER = r"""
#include "model.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

typedef void body(void *arg, int index, int count);
static void together(void *, body *call, void *arg, int count)
{
    std::vector<std::thread> workers;
    for (int i = count - 1; i; i--) workers.emplace_back(call, arg, i, count);
    call(arg, 0, count);
    for (auto &worker : workers) worker.join();
}
static void backwards(void *, body *call, void *arg, int count)
{
    for (int i = count; i--;) call(arg, i, count);
}
static void by_two(void *, body *call, void *arg, int count) /* fewer threads than parts */
{
    std::thread other([=] { for (int i = 1; i < count; i += 2) call(arg, i, count); });
    for (int i = 0; i < count; i += 2) call(arg, i, count);
    other.join();
}
static void none(void *, body *, void *, int) {}
static void not_all(void *, body *call, void *arg, int count) { call(arg, 0, count); }
static void twice(void *, body *call, void *arg, int count)
{
    call(arg, 0, count);
    backwards(nullptr, call, arg, count);
}
static void others(void *, body *call, void *arg, int) { backwards(nullptr, call, arg, 9); }

static model_weights weights;
struct outputs { float image[IMAGE], sums[SUMS], steps[STEPS]; };

static int run(const float *x, outputs &out, int threads, model_pool *pool)
{
    void *arena = std::aligned_alloc(64, model_arena_bytes(nullptr));
    const void *const in[] = {x};
    void *const outs[] = {out.image, out.sums, out.steps};
    const int status = model_run_on(weights.data, arena, nullptr, in, outs, threads, pool, nullptr);
    std::free(arena);
    return status;
}

int main()
{
    static float x[MODEL_INPUT0_COUNT];
    static outputs want;
    if (model_load(&weights, "model.safetensors")) return 1;
    for (int i = 0; i < MODEL_INPUT0_COUNT; i++) x[i] = float(i * 37 % 101) * 0.01f - 0.5f;
    int wrong = run(x, want, 1, nullptr);
    const auto right = [&](model_pool *pool) {
        int faults = 0;
        auto got = std::make_unique<outputs>();
        for (int threads : {2, 3, 8}) {
            std::memset(got.get(), 0, sizeof *got);
            faults += run(x, *got, threads, pool) || std::memcmp(got.get(), &want, sizeof want);
        }
        return faults;
    };
    std::vector<std::thread> callers; /* of several runs at once each has its own parts */
    int found[2] = {};
    for (int &f : found) callers.emplace_back([&] { f = right(together); });
    for (auto &c : callers) c.join();
    wrong += found[0] + found[1] + right(backwards) + right(by_two);
    auto got = std::make_unique<outputs>();
    for (model_pool *bad : {(model_pool *)nullptr, none, not_all, twice, others})
        wrong += run(x, *got, 3, bad) != MODEL_BAD_POOL;
    wrong += right(together); /* as before */
    std::printf("%d %s\n", wrong, model_status_text(MODEL_BAD_POOL));
    model_free(&weights);
}
"""
LOOKS = {"plain": ("-O2",), "tsan": ("-O1", "-fsanitize=thread"),
         "asan": ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")}


def shared(x: Any) -> Any:
    """Templates with memory for each thread and with phases, loops, and a reduction."""
    image = o.conv(x, values(x, 16, 8, 3, 3) * 0.1, padding=((1, 1), (1, 1)))
    steps = o.lstm(o.reshape(x, shape=(8, 4, 256)), values(x, 1, 64, 256) * 0.05,
                   values(x, 1, 64, 16) * 0.05, values(x, 1, 128) * 0.1)[0]
    return o.sort(image, axis=3)[0], o.reduce_sum(x * x, axes=(0,)), steps


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graphtool.build(module(shared, "f32[4,8,16,16]"), tmp_path_factory.mktemp("b") / "b",
                           name="model", threads_by="caller", precision="strict")


@pytest.mark.parametrize("look", ["tsan", *(
    pytest.param(look, marks=pytest.mark.slow) for look in ("plain", "asan"))])
def test_a_pool_of_cpp_threads(look: str, built: Path, tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    work = tmp_path / "b"
    shutil.copytree(built, work)
    driver, limits = re.subn(r"if \(threads > \d+\) threads = \d+;", "", (
        work / "model.c").read_text())
    assert limits == 1  # so little work is soonest done by few
    (work / "model.c").write_text(driver)
    (work / "user.cpp").write_text(USER)
    sizes = {"IMAGE": 4 * 16 * 16 * 16, "SUMS": 8 * 16 * 16, "STEPS": 8 * 4 * 16}
    sources = sorted(p.name for p in work.glob("*.c") if p.name != "model_example.c")
    for compiler in (["gcc", "-c", *sources], ["g++", "-std=c++17", "-pthread", *(
            f"-D{k}={v}" for k, v in sizes.items()), "user.cpp", *(
            f"{Path(s).stem}.o" for s in sources), "-lm", "-o", "user"]):
        done = subprocess.run([*compiler[:1], *LOOKS[look], "-g", *compiler[1:]], cwd=work,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]
    ran = subprocess.run(["./user"], cwd=work, capture_output=True, text=True, timeout=60)
    if "unexpected memory mapping" in ran.stderr:
        pytest.skip("TSan does not run on this kernel")
    assert ran.stdout == "0 there is no pool, or it did not run each part once\n", (
        ran.stdout + ran.stderr[:3000])


@pytest.mark.parametrize(("how", "says"), [
    ({"threads_by": "openmp"}, "threads cannot be by 'openmp'"),
    ({"threads_by": "caller", "target": "opencl"}, "cannot go with opencl")])
def test_threads_that_nothing_provides(how: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"GT2118.*{says}"):
        graphtool.build(module(o.relu, "f32[4]"), tmp_path / "b", **how)


def test_a_run_that_meets_has_one_part() -> None:
    """Where steps read a size, no thread goes on until all have read it; a pool may run them one
    after the other."""
    found = module(lambda x: o.nonzero(o.gt(x, 0.0), size=symbol("found", 0, 50)), "f32[50]")
    program = graphtool.lower_model(graphtool.optimize(found), name="m")
    text = graphtool.emit_c(replace(program, meta={**program.meta, "threads": "caller"}))
    assert "It uses one." in text["m.h"]
    assert "gt_run_on(run_thread, &s, 1, 0, run, pool)" in text["m.c"]


POOLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int parts;
static void backwards(void *pool, void (*body)(void *arg, int index, int count), void *arg,
                      int count)
{
    *(int *)pool += count;
    for (int i = count; i--;) body(arg, i, count);
}
"""
TRAINS = POOLS + r"""
#include "net.h"
static _Alignas(64) char one[NET_STATE_BYTES], other[NET_STATE_BYTES], arena[NET_ARENA_BYTES];
int main(void)
{
    static float x[64 * 24], y[64 * 8];
    for (int i = 0; i < 64 * 24; i++) x[i] = (float)(i * 37 % 101) * 0.01f - 0.5f;
    int wrong = net_init(one, arena, 1) || net_init_on(other, arena, 3, backwards, &parts);
    for (int n = 0; n < 3; n++) {
        float a, b;
        wrong += net_step(one, arena, x, y, 0.1f, &a, 1) != 0;
        wrong += net_step_on(other, arena, x, y, 0.1f, &b, 3, backwards, &parts) != 0;
        wrong += memcmp(&a, &b, sizeof a) || memcmp(one, other, sizeof one);
    }
    wrong += net_step_on(one, arena, x, y, 0.1f, x, 3, 0, 0) != NET_STEP_BAD_POOL;
    printf("%d %d\n", wrong, parts >= 9);
    return 0;
}
"""
LEVELS = POOLS + r"""
#include "net.h"
int main(void)
{
    static float x[64 * 24], one[64 * 300], other[64 * 300];
    for (int i = 0; i < 64 * 24; i++) x[i] = (float)(i * 37 % 101) * 0.01f - 0.5f;
    net_weights weights;
    void *const arena = aligned_alloc(64, net_arena_bytes(0));
    int wrong = net_load(&weights, "net.safetensors");
    wrong += net_run(weights.data, arena, 0, (const void *[]){x}, (void *[]){one}, 3);
    wrong += net_run_on(weights.data, arena, 0, (const void *[]){x}, (void *[]){other}, 3,
                        backwards, &parts);
    wrong += memcmp(one, other, sizeof one) != 0;
    printf("%d %d\n", wrong, parts >= 3);
    return 0;
}
"""


def said(work: Path, text: str) -> str:
    """What a program prints that is compiled with the C of a build, on as many parts as it asks."""
    (work / "user.c").write_text(text)
    for path in work.glob("*.c"):
        path.write_text(re.sub(r"if \(threads > (\d+|worth)\) threads = .*;", "", path.read_text()))
    done = subprocess.run(["gcc", "-O0", "-w", "-march=native", *sorted(
        p.name for p in work.glob("*.c") if not p.name.endswith("_example.c")), "-lm", "-o",
        "user"], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return subprocess.run(["./user"], cwd=work, capture_output=True, text=True, timeout=60).stdout


def layer(x: Any) -> Any:
    return o.tanh(o.matmul(x, values(x, 24, 300)))


def test_training_on_a_pool(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(24, 8), torch.nn.Tanh())
    step = graphtool.grad(graphtool.import_model(net, (torch.zeros(64, 24),)),
                          graphtool.Recipe("mse", optimizer="sgd"))
    built = graphtool.build(step, tmp_path / "b", name="net", threads_by="caller",
                            precision="strict", target="x86-64-v3")
    assert said(built, TRAINS) == "0 1\n"


@pytest.mark.slow
def test_levels_on_a_pool(tmp_path: Path) -> None:
    built = graphtool.build(module(layer, "f32[64,24]"), tmp_path / "b", name="net",
                            threads_by="caller", precision="strict", target="fat")
    (user := built / "user.c").write_text(LEVELS)
    done = subprocess.run(["gcc", "-w", user.name, "libnet.so", "-Wl,-rpath,.", "-o", "user"],
                          cwd=built, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ran = subprocess.run(["./user"], cwd=built, capture_output=True, text=True, timeout=60)
    assert ran.stdout.startswith("0 "), ran.stdout


def test_levels_hand_the_pool_on() -> None:
    program = graphtool.lower_model(graphtool.optimize(module(layer, "f32[64,24]")), name="v1")
    program = replace(program, meta={**program.meta, "threads": "caller"})
    text = dispatcher("net", {1: program}, "levels.h", "gt_level()")
    assert "{1, v1_status_text, v1_arena_bytes, v1_run, v1_run_on}," in text
    assert "int threads,\n        net_pool *run, void *pool)\n{" in text
