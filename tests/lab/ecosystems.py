"""Packages used by programs of other ecosystems: a table of what installs, builds, runs, is equal.

Each program is that of the tests: in an empty folder, by the ecosystem's own tools, offline, on a
model whose names no language takes. `equal` compares what it prints with what the build gives here.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import graphtool
from benchmarks import tables, work
from tests.package.conftest import Sample, expected, numbers, sample_in
from tests.package.ecosystems import BUILDS, ECOSYSTEMS, INSTALLS, Ecosystem

HEAD = ["ecosystem", "package", "tool", "installs", "builds", "runs", "equal"]
YES, NO = "yes", "no"


def arguments(parser: argparse.ArgumentParser) -> None:
    """No options of its own."""


def main(options: argparse.Namespace) -> int:
    """How many programs that could be tried do not give the build's numbers."""
    with tempfile.TemporaryDirectory(prefix="ecosystems-") as folder:
        sample = sample_in(Path(folder))
        rows = []
        for i, row in enumerate(ECOSYSTEMS.values()):
            place = Path(folder) / str(i)
            place.mkdir()
            rows.append(tried(row, sample, place))
            print(*rows[-1], flush=True)
    text = report(rows, options.command_line)
    work.results("ecosystems.md").write_text(text)
    print(f"\n{text}\n{work.results('ecosystems.md')} written")
    return sum(NO in row for row in rows)


def tried(row: Ecosystem, sample: Sample, place: Path) -> list[str]:
    """The cells of one ecosystem; a stage that its program does not have is a gap."""
    if row.missing:
        return [row.name, row.form, f"{row.missing.rstrip(':')} is not here", *[tables.GAP] * 4]
    given = row.sample(place) if row.sample else sample
    done, missing, got = list[str](), tables.GAP, np.zeros(0)
    try:
        done += row.steps(given, place)
        got = numbers(done[-1])
    except (AssertionError, graphtool.GraphtoolError) as error:  # what a tool said
        print(error)
        missing = NO
    want = expected(given)
    runs = missing != NO
    equal = runs and got.shape == want.shape and np.allclose(got, want, rtol=1e-5, atol=1e-6)
    return [row.name, row.form, version(row),
            *(YES if stage in done else missing for stage in (INSTALLS, BUILDS)),
            *(YES if fine else NO for fine in (runs, equal))]


def version(row: Ecosystem) -> str:
    """What the tool says that it is: its name and the first number with a point."""
    if row.tools[0].endswith(":"):
        module = __import__(row.tools[0][:-1])
        return f"{module.__name__} {module.__version__}"
    said = subprocess.run([row.tools[0], row.version], capture_output=True, text=True, check=False)
    number = next((w for w in said.stdout.replace("go1", "1").split() if w.strip("v").replace(
        ".", "").isdigit() and "." in w), "")
    return f"{Path(row.tools[0]).name} {number.strip('v')}"


def report(rows: list[list[str]], command: str) -> str:
    stamp = work.stamp()
    return "\n".join([
        "# Packages in other ecosystems", "",
        f"{stamp['date']}, {stamp['cpu']}; Debian 12. Command: `{command}`.", "",
        "A model with two inputs, two results, an open size, and names that no language takes. "
        "Each program works in an empty folder, without a network and without graphtool. "
        f"{tables.GAP}: the program has no such stage, or the tool is not here.", "",
        tables.markdown(HEAD, rows)])
