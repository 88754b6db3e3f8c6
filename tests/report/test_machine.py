"""What `machine` measures is a row that builds take, and the table's rows are sound."""

from __future__ import annotations

import ctypes
import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphtool import machines
from graphtool.errors import InputError, UsageError
from graphtool.kernels.choice.machine import fetched
from graphtool.native.compiler import find
from graphtool.report import machine
from graphtool.report import machine as report
from graphtool.target import TABLE, detect, named, on_machine, usual_machine

LOADS = [1 << 12, 1 << 16, 1 << 19, 1 << 21, 1 << 24, 1 << 30]


@pytest.fixture(scope="module")
def here() -> machines.Machine:
    return report.measured()


@pytest.mark.compiled
def test_what_is_measured_is_a_row(here: machines.Machine, tmp_path: Path) -> None:
    """Its file is read back as it was, and a target takes its figures."""
    assert here.f32 > 0 and all(b > 0 for b in (*here.gbps, here.all_gbps, here.meet))
    (tmp_path / "r.json").write_text(here.line())
    assert machines.machine(str(tmp_path / "r.json")) == here
    t = on_machine(detect(), str(tmp_path / "r.json"))
    assert (t.machine, t.bandwidth, t.l2) == ("here", here.gbps, here.l2)
    assert t.mhz * 4 * t.lanes / 1000 == pytest.approx(here.f32, rel=0.01)
    assert [r[0] for r in report.compared(here, here).rows] == [
        name for name, _ in report.figures(here)]
    assert report.distance(here, here).count("100 %") == 5


def test_rates_count_only_what_the_machine_has(tmp_path: Path) -> None:
    """A target of SSE2 has no dot products of bytes, and no tiles."""
    if named("native").levels is None:
        pytest.skip("this machine is not x86-64")
    made = machine.Rates(machine.loops(find(None, named("x86-64")), tmp_path), 1, 1 << 16)
    assert made.rate("f32") > 0 and made.read(1 << 14) > 0
    assert [made.rate(k) for k in ("int8", "bf16", "f16", "tile_int8", "tile_bf16")] == [0] * 5
    assert isinstance(made.library, ctypes.CDLL)


@pytest.mark.parametrize("name", machines.table())
def test_each_row_can_be_chosen(name: str) -> None:
    """A row has its own name, a target, and figures that fall from cache to cache."""
    m = machines.table()[name]
    assert m.name == name and m.cpus and m.isa in TABLE and m.source
    assert list(m.gbps) == sorted(m.gbps, reverse=True)
    t = on_machine(named(m.isa), name)
    assert t.machine == name and t.l1 == m.l1
    assert machines.machine(json.loads(m.line())["name"]) == m
    at = [fetched(t, 1e6, size) for size in LOADS]
    assert at == sorted(at)


def test_no_processor_has_two_rows() -> None:
    seen = [cpu for m in machines.table().values() for cpu in m.cpus]
    assert len(seen) == len(set(seen))


def test_units_narrower_than_vectors_are_no_faster_for_it() -> None:
    """Zen 4 adds vectors of 512 bits by halves: its rate is that of 256 bits."""
    wide, half = (on_machine(named(n), "zen4") for n in ("x86-64-v4", "x86-64-v3"))
    assert wide.mhz * wide.lanes == pytest.approx(half.mhz * half.lanes, rel=0.01)
    assert wide.dots == machines.table()["zen4"].rates["bf16"]


def test_threads_share_what_memory_gives() -> None:
    t = replace(on_machine(named("x86-64-v4"), "zen5"), all_gbps=60.0)
    one, four = (fetched(replace(t, threads=n), 1e6, 1 << 40) for n in (1, 4))
    assert four == pytest.approx(1e6 / 15 / 1000) and one == pytest.approx(1e6 / 40 / 1000)


@pytest.mark.parametrize(("cpu", "flags", "name"), [
    ("AuthenticAMD/26/2", TABLE["x86-64-v4"].needs, "zen5"),
    ("GenuineIntel/6/207", TABLE["sapphirerapids"].needs, "emerald-rapids"),
    ("GenuineIntel/6/207", TABLE["x86-64-v3"].needs, "emerald-rapids"),  # what a hypervisor shows
    ("GenuineIntel/6/167", TABLE["sapphirerapids"].needs, "generic"),  # a wrong model
    ("GenuineIntel/6/9999", TABLE["x86-64-v3"].needs, "generic"), ("", frozenset(), "generic")])
def test_the_processor_decides_the_row(cpu: str, flags: frozenset[str], name: str,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    if not detect().levels:
        pytest.skip("this machine is not x86-64")
    monkeypatch.setattr("graphtool.target.choice.cpu", lambda: cpu)
    monkeypatch.setattr("graphtool.target.choice.cpu_flags", lambda: flags)
    assert named("native").machine == usual_machine(named("native")) == name


@pytest.mark.parametrize(("text", "told"), [
    ("{}", "missing field"), ('{"name": 1}', "at \\$"), ("[]", "expected object")])
def test_a_file_that_is_no_row(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InputError, match=told) as caught:
        machines.machine(str(tmp_path / "r.json"))
    assert caught.value.code == "GT2104"


@pytest.mark.parametrize("change", [{"f32": 0.0}, {"f32": -1.0}, {"gbps": [1.0, 1.0, 1.0]},
                                    {"meet": -1.0}, {"name": "a b"}, {"name": ""},
                                    {"rates": {"bf16": 0.0}}, {"lanes": 1.5}])
def test_a_row_with_senseless_figures(change: dict[str, object], tmp_path: Path) -> None:
    row = json.loads(machines.table()["zen4"].line()) | change
    (tmp_path / "r.json").write_text(json.dumps(row))
    with pytest.raises(InputError, match="GT2104"):
        machines.machine(str(tmp_path / "r.json"))


def test_a_machine_of_another_kind() -> None:
    with pytest.raises(UsageError, match="GT2103"):
        on_machine(named("x86-64-v3"), "neoverse-n1")
    with pytest.raises(UsageError, match="GT2103"):
        machines.machine("zen99")


def test_generic_is_the_target_itself() -> None:
    t = on_machine(on_machine(named("x86-64-v4"), "zen3"), "generic")
    assert replace(t, threads=0) == replace(named("x86-64-v4"), threads=0)
