"""The table of targets: a row is all that a new target needs."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.analysis import made_up
from graphtool.compile.build import build
from graphtool.compile.options import LEVELS, Build
from graphtool.compile.source import Source
from graphtool.compile.unit import LibraryUnit
from graphtool.errors import CompilerError, UsageError
from graphtool.native import compiler, runtime
from graphtool.report.doctor import doctor
from graphtool.target import TABLE, Levels, Target, detect, family, isa, named, recognised, register
from tests.passes.pass_samples import SAMPLES

V3 = frozenset({"sse4_2", "avx", "avx2", "fma", "f16c"})
V4 = V3 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
TOYS = Levels("toy", "levels.h", "gt_x86_level()")
HERE = platform.machine().lower()


@pytest.fixture
def toy() -> Iterator[Target]:
    """A row that a plug-in might add: eight lanes, tiles of its own, its own name and flags."""
    own = register(Target("toy2", "a toy", 8, 5, 2, aliases=("toy",), flags=(("-DTOY=2",),),
                          machines=(HERE,), needs=V4 | {"toy_unit"}, more=("-DMORE",),
                          bf16_by=frozenset({"toy_bf16"}), levels=TOYS, level=2))
    register(replace(own, name="toy1", aliases=(), lanes=4, level=1, flags=((),), needs=V4))
    yield own
    del TABLE["toy2"], TABLE["toy1"]


@pytest.mark.parametrize(("machine", "flags", "name"), [
    ("x86_64", V4 | {"amx_bf16"}, "x86-64-v4"), ("amd64", V4 - {"avx512dq"}, "x86-64-v3"),
    ("x86_64", V3 - {"fma"}, "x86-64-v2"), ("x86_64", frozenset(), "x86-64"),
    ("arm64", frozenset(), "armv8-a"), ("riscv64", V4, "generic")])
def test_a_machine_is_the_row_with_most_of_its_features(machine: str, flags: frozenset[str],
                                                         name: str) -> None:
    assert recognised(machine, flags).name == name


def test_each_row_is_named_by_itself_and_its_aliases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "supports", lambda *_: True)
    for row in TABLE.values():
        assert {named(n).name for n in (row.name, *row.aliases)} == {row.name}


def test_a_device_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """So what is chosen for it, and measured times, hold wherever a build is made."""
    rows = []
    for count in (1, 64):
        monkeypatch.setattr("graphtool.target.choice.cores", lambda count=count: count)
        rows += [named("sm_90"), named("sm_90", threads=count)]
    assert all(row == rows[0] for row in rows)


@pytest.mark.parametrize("taken", [{"name": "armv8-a"}, {"name": "v4"}, {"aliases": ("native",)}])
def test_a_name_is_given_once(taken: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="GT2102"):
        register(replace(TABLE["generic"], **{"name": "unheard-of", **taken}))  # type: ignore[arg-type]
    assert "unheard-of" not in TABLE


def test_a_new_row_is_built_for(toy: Target, tmp_path: Path) -> None:
    """Tiles, flags and the names in program and manifest come from the row."""
    module = SAMPLES["convnet"]
    built = graphtool.build(module, tmp_path / "b", target="toy")
    manifest = runtime.read_manifest(built)
    assert manifest.target == "toy2" and {"-DTOY=2", "-DMORE"} <= {*manifest.flags}
    assert "#define GT_LANES 8\n" in (built / "model_kernels.h").read_text()
    xs = made_up.random_inputs(module, 0)
    for name, want in interp.run(module, xs).items():
        np.testing.assert_allclose(runtime.load(built).run(xs)[name], want, rtol=1e-4, atol=1e-5)


@pytest.mark.compiled
def test_a_new_row_is_recognised_and_reported(toy: Target,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("target.choice", "report.doctor"):
        monkeypatch.setattr(f"graphtool.{user}.cpu_flags", lambda: toy.needs | toy.bf16_by)
    here = detect()
    assert (here.name, here.march, here.bf16, isa(here)) == ("toy2", "native", True, "toy2+bf16")
    checks = {c.name: c.value for c in doctor({}).checks}
    assert checks["target"].startswith("toy2: a toy") and "toy_unit" in checks["features"]


@pytest.mark.skipif(HERE not in ("x86_64", "amd64"), reason="the toys ask for the level of x86-64")
def test_a_new_family_shares_one_library(toy: Target, tmp_path: Path) -> None:
    targets = family(TOYS)
    assert list(targets) == [2, 1]
    module = SAMPLES["convnet"]
    unit = LibraryUnit("model", LEVELS, {"": Source(module)}, targets)
    built = build(unit, tmp_path / "b", Build()).path
    assert "The level of toy, 1 to 2" in (built / "model.h").read_text()
    xs = made_up.random_inputs(module, 0)
    for name, want in interp.run(module, xs).items():
        np.testing.assert_allclose(runtime.load(built).run(xs)[name], want, rtol=1e-4, atol=1e-5)


def test_a_compiler_for_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "supports", lambda *_: False)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(CompilerError, match="GT2124") as found:
        compiler.march_flags(named("armv8-a"), ("cc",))
    assert "aarch64-linux" in found.value.hint
