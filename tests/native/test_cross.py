"""Compiled for a 64-bit Arm with NEON, and run by an emulator: the evaluator's results."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.analysis import made_up
from graphtool.io import npz
from tests.passes.pass_samples import SAMPLES

COMPILERS = {"zig": f"{sys.executable} -m ziglang cc -target aarch64-linux-musl",
             "gcc": "aarch64-linux-gnu-gcc"}
INSTALLED = {"zig": find_spec("ziglang") is not None,
             "gcc": shutil.which("aarch64-linux-gnu-gcc") is not None}
ROOT = "/usr/aarch64-linux-gnu"  # where Debian's cross libraries lie


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="qemu-user is not installed")
@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("cc", sorted(COMPILERS))
def test_arm(cc: str, name: str, tmp_path: Path) -> None:
    if not INSTALLED[cc]:
        pytest.skip(f"{COMPILERS[cc]} is not installed")
    built = graphtool.build(SAMPLES[name], tmp_path / "b", target="armv8-a", cc=COMPILERS[cc],
                            exe=True)
    xs = made_up.random_inputs(SAMPLES[name], 1)
    npz.save(xs, tmp_path / "in.npz")
    subprocess.run(["qemu-aarch64", "-L", ROOT, str(built / "model"), str(tmp_path / "in.npz"),
                    "-o", str(tmp_path / "out.npz")], check=True, capture_output=True)
    for key, want in interp.run(SAMPLES[name], xs).items():
        np.testing.assert_allclose(npz.load(tmp_path / "out.npz")[key], want, rtol=1e-4, atol=1e-5)
