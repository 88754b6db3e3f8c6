"""`--precision strict`: one result, to the bit, whatever machine, compiler or number of threads."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from graphtool import passes
from graphtool.compile.as_is import build
from graphtool.io import npz
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import rules_of
from graphtool.machines import cpu_flags
from graphtool.native import runtime
from graphtool.target import named
from tests.native.strict_models import MODELS, inputs_of, strict_model

GOLDEN = Path(__file__).parent / "golden" / "strict.txt"
LEVELS = ("generic", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
QUICK = ("decoder", "digits", "encoder")
THREADS = (1, 2, 3, 7)
ARM = "aarch64-linux-gnu-gcc"


def digest(outputs: Mapping[str, Any]) -> str:
    """A hash of the bits of all outputs."""
    h = hashlib.sha256()
    for x in outputs.values():
        h.update(np.ascontiguousarray(x).tobytes())
    return h.hexdigest()[:16]


def known() -> dict[str, str]:
    """The digest of each model's outputs."""
    return dict(line.split() for line in GOLDEN.read_text().splitlines())


def compiled(module: Module, march: str, path: Path, **how: Any) -> Path:
    target = named(march, max(THREADS))
    ready = passes.run(module, None, supply={"target": target, "rules": rules_of("strict")})
    with patch("graphtool.emit.shares.LEAST_WORK", 1):  # many pieces
        return build(ready, path, target=target, **how)


def check(name: str, levels: tuple[str, ...], cc: str, path: Path) -> set[str]:
    """The digests of a model over levels and threads."""
    if shutil.which(cc) is None:
        pytest.skip(f"{cc} is not installed")
    module, found = strict_model(name), set()
    for march in (x for x in levels if named(x).needs <= cpu_flags()):
        built = compiled(module, march, path / march, cc=cc)
        found |= {digest(runtime.load(built, n).run(inputs_of(module))) for n in THREADS}
    return found


@pytest.mark.part(5)
@pytest.mark.parametrize("name", QUICK)
def test_levels_and_threads(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = check(name, LEVELS, "gcc", tmp_path)
    if request.config.getoption("--update-golden"):
        (one,) = found
        rows = (known() if GOLDEN.exists() else {}) | {name: one}
        GOLDEN.write_text("".join(f"{k} {v}\n" for k, v in sorted(rows.items())))
    assert found == {known()[name]}


@pytest.mark.slow
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("name", MODELS)
def test_compilers(name: str, cc: str, tmp_path: Path) -> None:
    assert check(name, LEVELS, cc, tmp_path) == {known()[name]}


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("qemu-aarch64") and shutil.which(ARM)),
                    reason="qemu-user or the cross compiler is not installed")
@pytest.mark.parametrize("name", MODELS)
def test_arm(name: str, tmp_path: Path) -> None:
    module = strict_model(name)
    built = compiled(module, "armv8-a", tmp_path / "b", cc=ARM, exe=True)
    npz.save(inputs_of(module), tmp_path / "in.npz")
    subprocess.run(["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", str(built / "model"),
                    str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")], check=True,
                   capture_output=True)
    found = npz.load(tmp_path / "out.npz")
    assert digest({k: found[k] for k in module.output_names}) == known()[name]
