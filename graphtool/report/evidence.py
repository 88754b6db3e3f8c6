"""Evidence for a build of `--profile safety`: proofs about its indices, the tests of its kernels,
how much of their C these run, and the same numbers by every compiler, level of optimisation and
board that is at hand."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import graphtool.emit.c99
import graphtool.kernels  # noqa: F401  (fills the table that the reader uses)
from graphtool.emit.deviations import deviations_text
from graphtool.emit.language import language_of
from graphtool.emit.typed import weight_text
from graphtool.emit.weights import divided
from graphtool.errors import CompilerError, UsageError
from graphtool.escaping import markdown as cell
from graphtool.io.weights import layout
from graphtool.loops import serial
from graphtool.loops.proofs import ProgramProof, proofs
from graphtool.native import board
from graphtool.report.unit_tests import KernelTest, unit_tests
from graphtool.target import TABLE

COMPILERS = ("gcc", "clang")
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
FLAGS = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wcast-align")
_COVERED = re.compile(r"File '([^']+)'\nLines executed:([\d.]+)% of (\d+)\n(?:Branches executed:"
                      r"[\d.]+% of (\d+)\nTaken at least once:([\d.]+)% of \d+)?")


class Coverage(msgspec.Struct):
    """Of one file: the lines and how many per cent of them were run, and so for the outcomes of
    branches."""

    file: str
    lines: int
    lines_run: float
    branches: int
    branches_taken: float


class Replication(msgspec.Struct):
    """One compilation: by what, and how many warnings it had and numbers differed; None if it does
    not run here."""

    by: str
    warnings: int
    differences: int | None


class Evidence(msgspec.Struct):
    """All that is shown of a build, with the `files` of its tests."""

    proofs: ProgramProof
    tests: list[KernelTest]
    coverage: list[Coverage]
    replications: list[Replication]
    files: dict[str, str]

    @property
    def holds(self) -> bool:
        """Whether no number differs, and each kernel is tested."""
        return all(r.differences in (0, None) for r in self.replications) and all(
            t.compared for t in self.tests)


def evidence(folder: Path, name: str) -> Evidence:
    """The evidence for a build that was kept. Raises UsageError GT2134 for one of another kind."""
    programs = sorted(folder.glob("stages/*.program.json"))
    program, store = serial.load(programs[-1]) if programs else (None, {})
    if program is None or not language_of(program).plain:
        raise UsageError("GT2134", "there is evidence for a build with --profile safety and --keep",
                         where=str(folder))
    at, _ = layout([store[d] for _, d in program.weights])
    parts = divided(name, {(at[d], at[d] + store[d].nbytes) for _, d in program.weights}, 0)
    held = {b.name: weight_text(program, b, parts) for b in program.buffers if b.space == "weight"}
    files, rows = unit_tests(program, store, held)
    with TemporaryDirectory(prefix="graphtool-evidence-") as there:
        work = Path(there)
        for path in (*folder.glob("*.c"), *folder.glob("*.h")):
            shutil.copy(path, work)
        for file, text in files.items():
            (work / file).write_bytes(text.encode())
        return Evidence(proofs(program), rows, list(_coverage(work, name)),
                        [*_replications(work, name), *_boards(work, name)], files)


def _coverage(work: Path, name: str) -> Iterator[Coverage]:
    """What the tests run of the kernels and of the functions of numbers, as gcov counts it."""
    if not (shutil.which("gcc") and shutil.which("gcov")):
        return
    (work / "covered").mkdir()
    sources = sorted(p.name for p in work.glob("*.c"))
    subprocess.run(["gcc", "-std=c99", "-O0", "--coverage", *sources, "-lm", "-o", "covered/run"],
                   cwd=work, check=True, capture_output=True)
    subprocess.run([work / "covered" / "run"], cwd=work, check=False, capture_output=True)
    done = subprocess.run(["gcov", "-b", f"covered/run-{name}_kernels0.gcda"], cwd=work,
                          capture_output=True, encoding="utf-8", check=False)
    for file, lines, of, branches, taken in _COVERED.findall(done.stdout):
        if file.startswith(name):
            yield Coverage(file, int(of), float(lines), int(branches or 0), float(taken or 100))


def _replications(work: Path, name: str) -> Iterator[Replication]:
    """The tests by each compiler and level of optimisation."""
    for compiler in filter(shutil.which, COMPILERS):
        for level in LEVELS:
            sources = sorted(p.name for p in work.glob("*.c"))
            made = subprocess.run([compiler, *FLAGS, level, *sources, "-lm", "-o", "tests"],
                                  cwd=work, capture_output=True, encoding="utf-8", check=False)
            if made.returncode:
                raise CompilerError("GT2121", f"{compiler} failed", where=made.stderr[-2000:])
            ran = subprocess.run([work / "tests"], capture_output=True, encoding="utf-8",
                                 check=False)
            found = re.findall(r": (\d+) differences", ran.stdout)
            yield Replication(f"{compiler} {level}", made.stderr.count("warning:"),
                              sum(map(int, found)))


def _boards(work: Path, name: str) -> Iterator[Replication]:
    """The tests on each board that can be emulated here."""
    (work / f"{name}_test_main.c").unlink()
    (work / "board_main.c").write_bytes(
        (f"#include <stdint.h>\nvoid board_write(const char *text);\nint32_t {name}_test(void);\n"
        f'int main(void)\n{{\n    board_write({name}_test() == 0 ? "equal\\n" : "differ\\n");\n'
        "    return 0;\n}\n").encode())
    for target in board.EMULATED:
        if not board.missing(target):
            sources = sorted(p.name for p in work.glob("*.c"))
            by = f"{TABLE[target].cross} -O2, {target} in qemu"
            try:
                text = board.run(work, sources, target)
            except CompilerError as error:
                if "overflowed by" not in str(error.where):
                    raise
                yield Replication(by, 0, None)  # the board has less memory than the model takes
            else:
                yield Replication(by, 0, 0 if text == "equal\n" else 1)


def _unproved(p: ProgramProof) -> str:
    """How much is proved, in words."""
    rest = sum(not k.holds for k in p.kernels)
    left = f" It is not shown that {', '.join(p.unwritten)} is written whole." * bool(p.unwritten)
    return (f"This is proved of {len(p.kernels) - rest} of {len(p.kernels)} kernels." + left)


def text(e: Evidence, name: str) -> str:
    """The page as Markdown."""
    def table(head: str, rows: list[str]) -> str:
        return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *rows, ""])
    exact = sum(t.exact for t in e.tests)
    return "\n".join([
        f"# Evidence for {name}", "",
        f"{len(e.tests)} kernels are tested, {exact} of them to the bit; the others call functions "
        "such as exp, and are compared within 1e-5. Expected numbers come from the interpreter of "
        "programs.", "",
        table("| kernel | test | numbers compared | bits |",
              [f"| {t.kernel} | {t.function} | {t.compared} | "
               f"{'equal' if t.exact else 'within 1e-5'} |" for t in e.tests]),
        "## Memory", "",
        "For all values of the loops, and for all sizes that the build allows: every index is "
        "inside of its array, and every element of a result is written exactly once. "
        f"{_unproved(e.proofs)}", "",
        table("| kernel | loads | stores | indices inside | results written once | indices from "
              "data |",
              [f"| {k.kernel} | {k.loads} | {k.stores} | {k.inside} | {k.once} | "
               f"{'; '.join(f'`{cell(c)}`' for c in k.clamped)} |" for k in e.proofs.kernels]),
        "## Coverage of the kernels by these tests (gcov)", "",
        table("| file | lines | run | branches | taken |",
              [f"| {c.file} | {c.lines} | {c.lines_run} % | {c.branches} | {c.branches_taken} % |"
               for c in e.coverage]),
        "## The same numbers", "",
        table("| compiled by | warnings | numbers that differ |",
              [f"| {r.by} | {r.warnings} | "
               f"{'too large' if r.differences is None else r.differences} |"
               for r in e.replications]),
        "## Deviations from MISRA C:2012", "", deviations_text()])
