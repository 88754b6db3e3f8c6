"""`--march fat`: one library, a version for each level of x86-64, and no illegal instruction."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.analysis import made_up
from graphtool.io import npz
from graphtool.io.weights import load as load_weights
from graphtool.kernels.choice.sites import Product
from graphtool.native import runtime
from graphtool.target import X86_64, family
from graphtool.tune.measure import PASSES, model
from tests.passes.pass_samples import SAMPLES

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
NAME = "convnet"
CHILD = """
import sys
from pathlib import Path
import graphtool
from graphtool.io import npz
model = graphtool.load(sys.argv[1])
npz.save(model.run(npz.load(Path(sys.argv[2]))), Path(sys.argv[3]))
print(model.library.model_level())
"""


@pytest.fixture(scope="module", params=["file", pytest.param("embed", marks=pytest.mark.slow)])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fat") / "b"
    return graphtool.build(SAMPLES[NAME], out, target="fat", exe=True, weights=request.param)


@pytest.mark.parametrize("level", sorted(family(X86_64)))
def test_each_level_computes_the_same(built: Path, level: int, tmp_path: Path) -> None:
    xs = made_up.random_inputs(SAMPLES[NAME], 1)
    npz.save(xs, tmp_path / "in.npz")
    done = subprocess.run([sys.executable, "-c", CHILD, str(built), str(tmp_path / "in.npz"),
                           str(tmp_path / "out.npz")], capture_output=True, text=True, check=True,
                          env=os.environ | {"GRAPHTOOL_LEVEL": str(level)})
    assert int(done.stdout) <= level
    for key, want in interp.run(SAMPLES[NAME], xs).items():
        np.testing.assert_allclose(npz.load(tmp_path / "out.npz")[key], want, rtol=1e-4, atol=1e-5)


def test_the_manifest_names_the_levels(built: Path) -> None:
    manifest = runtime.read_manifest(built)
    assert manifest.levels == list(family(X86_64)) and manifest.target == "fat"


def test_weights_that_levels_share_are_kept_once(built: Path) -> None:
    names = [built / f"model{end}" for end in (".safetensors", "_weights.bin")]
    held = load_weights(next(path for path in names if path.exists()))
    assert len({w.source.tobytes() for w in held.values()}) == len(held)


def test_again_is_no_work(built: Path) -> None:
    before = (built / "build.json").stat().st_mtime_ns
    mode = json.loads((built / "build.json").read_text())["weights_mode"]
    graphtool.build(SAMPLES[NAME], built, target="fat", exe=True, weights=mode)
    assert (built / "build.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("options", [["--keep"], ["--cc", "no-such-cc"]])
def test_refusals(options: list[str], tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "samples" / "digits.onnx"
    done = subprocess.run([sys.executable, "-m", "graphtool", "build", str(source), "--march",
                           "fat", "-o", str(tmp_path / "b"), *options], capture_output=True,
                          text=True)
    assert done.returncode in (2, 5) and done.stderr.startswith("error[GT")
    assert not (tmp_path / "b").exists()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="qemu-user is not installed")
@pytest.mark.parametrize("cpu", ["qemu64", "Nehalem", "Haswell", "max"])
def test_on_older_processors(built: Path, cpu: str, tmp_path: Path) -> None:
    xs = made_up.random_inputs(SAMPLES[NAME], 1)
    npz.save(xs, tmp_path / "in.npz")
    subprocess.run(["qemu-x86_64", "-cpu", cpu, str(built / "model"), str(tmp_path / "in.npz"),
                    "-o", str(tmp_path / "out.npz")], check=True, capture_output=True)
    for key, want in interp.run(SAMPLES[NAME], xs).items():
        np.testing.assert_allclose(npz.load(tmp_path / "out.npz")[key], want, rtol=1e-4, atol=1e-5)


def test_a_library_for_large_products_serves_every_level(tmp_path: Path) -> None:
    pytest.importorskip("scipy_openblas32")
    module = model(Product(1, 40, 70, 65))
    built = graphtool.build(module, tmp_path / "b", target="fat", passes=PASSES, kernels="blas")
    xs = made_up.random_inputs(module, 0)
    np.testing.assert_allclose(runtime.load(built).run(xs)["y"], interp.run(module, xs)["y"],
                               rtol=1e-4, atol=1e-4)
