"""What the GPU benchmark takes to a machine with a GPU: a case that is packed, unpacked, run on the
driver of the tests and compared; and its tables from stored rows."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphtool
from benchmarks import gpu, gpu_data, gpu_facts, gpu_prepare, gpu_report, gpu_run
from benchmarks.__main__ import parser
from benchmarks.gpu_peers import Device
from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import cuda
from tests.native.cuda import OnC, folder

RNG = np.random.default_rng(3)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_large_arrays_are_recipes(dtype: str) -> None:
    """They come back with the mean and the spread that they had; small ones, and those that are
    not noise, with their bytes."""
    noise, raw = gpu_data.block(), dict[str, bytes]()
    x = gpu_data.narrow(RNG.normal(.5, 2, 20_000).astype(np.float32), dtype)
    recipe = gpu_data.recipe_of(x, dtype, "x", 3, raw)
    assert not raw
    back = gpu_data.wide(gpu_data.bytes_of(recipe, noise, raw), dtype)
    assert back.size == 20_000 and abs(back.mean() - .5) < .1 and abs(back.std() - 2) < .1
    for y in (x[:100], np.zeros_like(x)):
        recipe = gpu_data.recipe_of(y, dtype, "y", 3, raw)
        assert gpu_data.bytes_of(recipe, noise, raw).tobytes() == y.tobytes()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.compiled
def test_a_case_runs_where_only_its_file_is(work: Path, libcuda: ctypes.CDLL,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepared with the compiler of the tests, and measured; a case that fails is a row too."""
    monkeypatch.setattr(cuda, "find", OnC)
    monkeypatch.setenv("LD_LIBRARY_PATH", folder())
    ctypes.c_int.in_dll(libcuda, "cuda_arch").value = 90
    w = RNG.standard_normal((70, 80)).astype(np.float32)
    m = Module(trace(lambda x: o.relu(o.linear(x, x.builder.constant(w), None)),
                     [TensorType(dtypes.float32, (9, 80))], ["x"]), ("y",))
    gpu_prepare.bundle("small.float32", graphtool.optimize(m, target="sm_90"), "sm_90", {})
    case, raw = gpu_data.read(work / "gpu" / "small.float32.zip")
    assert case.size >= w.nbytes and not any(name.startswith("w") for name in raw)
    device = Device(case, raw)
    device.run()
    assert device.error() < 1e-6
    wrong = {"out0": np.ones(9 * 70).tobytes()}
    assert gpu_data.error(case, [np.zeros(9 * 70 * 4, np.uint8)], wrong) == 1
    (work / "gpu" / "broken.bf16.zip").write_bytes(b"no zip")
    options = SimpleNamespace(models=["broken.bf16", "small.float32", "lost.bf16"], redo=False,
                              limit=60.0, parallel=2, seconds=.01)
    monkeypatch.setattr(gpu_run, "PEERS", {"graphtool": gpu_run.PEERS["graphtool"]})
    monkeypatch.setattr(gpu_run, "machine", dict)
    assert gpu_run.run(options) == 1
    rows = gpu_run.journal().rows()
    row = rows["small.float32", "graphtool"]
    assert row["median"] > 0 and row["error_rms"] < 1e-6
    assert "BadZipFile" in rows["broken.bf16", "graphtool"]["error"]


def test_the_report() -> None:
    """Ratios and goals from the rows that there are; without times it is about the code."""
    rows: dict[Any, Any] = {
        ("machine", ""): {"gpu": "a card", "date": "2026-01-01", "torch": "2"},
        ("mlp_b1.bf16", "graphtool"): {"median": .01, "error_rms": 1e-3},
        ("mlp_b1.bf16", "eager"): {"median": .03}, ("mlp_b1.bf16", "compile"): {"median": .02},
        ("bert_b16.bf16", "graphtool"): {"error": "no memory"},
        ("mlp_b1.bf16", "racecheck"): {"said": "no hazards"}}
    text = gpu_report.markdown(rows, {})
    assert "| mlp_b1 |     10.00 | 30.00 |   20.00 | compile   |  2.00 | 1.0e-03 |" in text
    assert "over 1 cases: 2.00; least 2.00. Goal: 1.3, and none below 1.0." in text
    assert "* bert_b16.bf16 by graphtool: no memory" in text and "no hazards" in text
    kernel = {"kernel": "k0", "template": "gemm", "registers": 60, "stack": 0, "shared": 99,
              "HMMA": 4}
    facts = {"mlp_b1.bf16": {"kernels": [{"arch": a, **kernel} for a in gpu_facts.ARCHITECTURES],
                             "sizes": dict.fromkeys(("80", "87", "90", "120"), 7000)}}
    text = gpu_report.markdown({}, facts)
    assert "No GPU was at hand" in text
    assert "| mlp_b1.bf16 | gemm   |     1 | 60/60/60/60 | 0/0/0/0 | 99/99/99/99 |    4 |" in text


def test_each_case_has_a_network() -> None:
    torch = pytest.importorskip("torch")
    from benchmarks.models.device import CASES, made
    assert set(CASES) == set(gpu.NETWORKS)
    assert {gpu_report.group_of(c) for c in gpu.CASES} == set(gpu_report.GOALS)
    model, (x,) = made("mlp_b1", torch.bfloat16)
    assert model(x).dtype is torch.bfloat16
    assert parser().parse_args(["gpu", "--run"]).models == gpu.CASES


def test_templates_of_kernels() -> None:
    text = '#define GT_NAME m_k4_0\n#include "gemm_cuda.h"\nGT_KERNEL void m_k5(int64_t d0)\n'
    assert gpu_facts.of_kernels(text) == {"m_k4": "gemm"}
