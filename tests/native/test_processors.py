"""The processors: how many threads a run has, in Python and in C, and what they are called."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from graphtool.kernels import headers
from graphtool.machines import cores, cpu_flags, model, tiles_allowed
from graphtool.report.doctor import doctor

V1 = "sys/fs/cgroup/cpu"
MACHINES: dict[str, tuple[int, str, dict[str, str]]] = {
    "affinity": (5, "0::/", {}),
    "v2": (2, "0::/app", {"sys/fs/cgroup/app/cpu.max": "250000 100000\n"}),
    "v2 of a container": (3, "0::/", {"sys/fs/cgroup/cpu.max": "300000 100000\n"}),
    "v2 above": (1, "0::/a/b", {"sys/fs/cgroup/a/cpu.max": "50000 100000\n",
                                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}),
    "v2 without a quota": (5, "0::/app", {"sys/fs/cgroup/app/cpu.max": "max 100000\n"}),
    "v2 beyond the affinity": (5, "0::/", {"sys/fs/cgroup/cpu.max": "900000 100000\n"}),
    "v1": (4, "2:cpuacct,cpu:/x\n1:cpuset:/x", {
        f"{V1}/x/cpu.cfs_quota_us": "200000\n", f"{V1}/x/cpu.cfs_period_us": "50000\n"}),
    "v1 seen from inside": (2, "4:cpu,cpuacct:/docker/of/host", {
        f"{V1}/cpu.cfs_quota_us": "200000\n", f"{V1}/cpu.cfs_period_us": "100000\n"}),
    "v1 without a quota": (5, "1:cpu:/", {
        f"{V1}/cpu.cfs_quota_us": "-1\n", f"{V1}/cpu.cfs_period_us": "100000\n"}),
    "both": (1, "1:cpu:/\n0::/u", {
        f"{V1}/cpu.cfs_quota_us": "300000\n", f"{V1}/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/u/cpu.max": "190000 100000\n"}),
    "junk": (5, "nonsense\n0::/", {"sys/fs/cgroup/cpu.max": "\n"}),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    (folder / "processors.h").write_text(headers.text("processors.h") or "")
    (folder / "ask.c").write_text(
        '#include "processors.h"\nint main(int n, char **given)\n'
        '{ printf("%d\\n", n > 1 ? gt_processors_of(given[1]) : gt_processors()); }\n')
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O2", "ask.c", "-o", "ask"], cwd=folder,
                   check=True)
    return folder / "ask"


@pytest.mark.parametrize("name", MACHINES)
def test_affinity_and_quotas(name: str, program: Path, tmp_path: Path) -> None:
    want, groups, files = MACHINES[name]
    files = {"proc/self/status": "Name:\tx\nCpus_allowed:\t17\nCpus_allowed_list:\t0-2,4,8\n",
             "proc/self/cgroup": groups + "\n", **files}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    asked = subprocess.run([program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (cores(tmp_path), asked.stdout) == (want, f"{want}\n")


def test_this_machine(program: Path) -> None:
    asked = subprocess.run([program], capture_output=True, text=True, check=True)
    assert int(asked.stdout) == cores() >= 1


@pytest.mark.parametrize(("text", "name"), [
    ("processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\n"
     "model name : Xeon\nstepping : 8\nprocessor : 1\nmodel : 7\n",
     "Xeon, family 6, model 143, stepping 8"),
    ("processor : 0\nCPU part : 0xd40\nModel : a board\n", "a board, part 0xd40"),
    ("", platform.machine())])
def test_the_model(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(text)
    assert model(tmp_path) == name


def test_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (tiles_allowed() is None) == ("amx_tile" not in cpu_flags())
    monkeypatch.setattr("graphtool.report.doctor.tiles_allowed", lambda: False)
    found = {c.name: c for c in doctor({}).checks}["matrix unit"]
    assert found.ok is False and "vectors stand in" in found.value
