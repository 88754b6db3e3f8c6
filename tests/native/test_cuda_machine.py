"""What users meet on a machine with a GPU: the report of doctor, and the C program of the guide."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.cli.tuning import _device_for
from graphtool.errors import InputError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.kernels.choice.tuning import Tuning
from graphtool.native import cards
from graphtool.report import doctor
from graphtool.target import named
from graphtool.tune import search
from tests.native.cuda import folder

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed"),
              pytest.mark.usefixtures("device")]
RNG = np.random.default_rng(29)


def value(library: ctypes.CDLL, name: str) -> ctypes.c_int:
    return ctypes.c_int.in_dll(library, name)


@pytest.mark.parametrize(("arch", "builds"), [
    (90, "--target sm_90"), (86, "--target sm_80"), (89, "--target sm_87"),
    (100, "--target cuda, whose PTX the driver compiles"),
    (75, "no target: it is older than the GPUs that there are targets for")])
def test_doctor_names_the_card(device: ctypes.CDLL, arch: int, builds: str) -> None:
    value(device, "cuda_arch").value = arch
    driver, card = doctor._cards(cards.driver())
    assert driver.value == "libcuda.so.1, for CUDA 13.0"
    assert card.name == "GPU 0" and card.value == (
        f"a processor as a GPU: compute capability {arch // 10}.{arch % 10}, 132 multiprocessors, "
        f"1.5 GiB; {builds}")


def test_doctor_says_what_the_driver_lacks(device: ctypes.CDLL,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    for call in (2, 3, 5, 6):  # of those that ask for the cards
        value(device, "cuda_fail_in").value = call
        (said,) = doctor._cards(cards.driver())
        assert "it has no GPU (error" in said.value
    monkeypatch.setattr(cards, "DRIVER", "libcuda.so.0")
    assert cards.driver() is None
    (said,) = doctor._cards(None)
    assert said.value.startswith("no driver libcuda.so.0")


def test_the_program_of_the_guide_runs_on_a_device(tmp_path: Path) -> None:
    """It is compiled with a library that has the name and the ports of resnet50, and runs it."""
    w = RNG.standard_normal((1000, 3)).astype(np.float32)
    m = Module(trace(lambda x: o.linear(o.reshape(o.reduce_mean(x, axes=(2, 3)), shape=(1, 3)),
                                        x.builder.constant(w), None),
                     [TensorType(dtypes.float32, (1, 3, 224, 224))], ["image"]), ("logits",))
    built = graphtool.build(m, tmp_path / "gpu", target="cuda", name="resnet50")
    image = RNG.standard_normal((1, 3, 224, 224)).astype(np.float32)
    image.tofile(tmp_path / "image.bin")
    source = Path(__file__).parents[2] / "docs" / "examples" / "gpu" / "resnet50.c"
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", str(source), f"-I{built}", f"-L{built}",
                    "-lresnet50", f"-Wl,-rpath,{built}", "-o", "classify"], cwd=tmp_path,
                   check=True)
    call = ["./classify", str(built / "resnet50.safetensors"), "image.bin"]
    said = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True,
                          env={"LD_LIBRARY_PATH": folder()})
    best = int(np.argmax(interp.run(m, {"image": image})["logits"]))
    assert said.stdout == f"class {best}\n", said.stderr
    said = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, env={})
    assert said.returncode == 1 and "libcuda.so.1" in said.stderr


@pytest.mark.parametrize("site", [Product(1, 5, 70, 40), Conv(1, 4, 4, 8, 40, 3, 3)], ids=str)
def test_tune_measures_the_widths_of_panels(site: Product | Conv) -> None:
    """Those of a warp's tiles, and four warps together. The usual one is taken where nothing is
    measured."""
    how, kept = search.Search(named("sm_90"), Rules(), .01), list[Tuning]()
    measured, = search.tune({site: 1}, how, None, kept.append, Tuning())
    assert len(measured.candidates) == 3 and all(us > 0 for us in measured.candidates.values())
    assert "nv=1" in measured.usual and len(kept[0].rows) == 1


def test_tune_without_a_card_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    _device_for(named("sm_90"))
    monkeypatch.setattr(cards, "driver", lambda: None)
    with pytest.raises(InputError, match="no device to measure kernels of sm_90 on") as told:
        _device_for(named("sm_90"))
    assert told.value.code == "GT2232"
