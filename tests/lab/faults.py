"""Commands whose system calls fail or whose process is killed, and many at once.

`strace` lets the n-th call of a kind fail in every process of a command, compilers and compiled
trainers too: with an input or output error, as a full disk, or by a kill. Whatever happens, the old
artifact or the new one stands there whole, an error is one with a code, and the same command then
works. Needs `strace` and the right to trace.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import tables, work
from benchmarks.work import Journal, Row

SAMPLES = Path(__file__).parents[2] / "samples"
CALLS = ("write", "pwrite64", "writev", "fsync", "rename,renameat,renameat2", "mkdir,mkdirat",
         "unlink,unlinkat,rmdir", "ftruncate", "link,linkat,symlink", "flock")
HOW = {"EIO": "error=EIO:when={}", "full disk": "error=ENOSPC:when={}+",
       "kill": "signal=KILL:when={}"}
GOOD = ("refused", "done", "killed")
SECONDS = 300


@dataclass(frozen=True)
class Command:
    """A command line, the artifact that it writes, and the commands that come before it once."""

    line: str
    writes: str
    before: tuple[str, ...] = ()
    same: bool = True  # whether every run writes the same bytes


_IMPORT = "graphtool import {samples}/digits.onnx --no-check -o m.graph.json"
_GRAD = "graphtool grad m.graph.json --loss cross_entropy --optimizer sgd -o t.graph.json"
_DATA = "--data {samples}/digits_train.npz --epochs 1 --batch 500 --checkpoint run"
COMMANDS = {
    "import": Command(_IMPORT, "m.graph.json"),
    "opt": Command("graphtool opt m.graph.json -o o.graph.json", "o.graph.json", (_IMPORT,)),
    "export": Command("graphtool export m.graph.json -o x.onnx", "x.onnx", (_IMPORT,)),
    "emit": Command("graphtool emit m.graph.json -o c", "c", (_IMPORT,)),
    "build": Command("graphtool build m.graph.json -o b", "b", (_IMPORT,)),
    "quantise": Command("graphtool quantise m.graph.json -o q.graph.json", "q.graph.json",
                        (_IMPORT,)),
    "view": Command("graphtool view m.graph.json --no-open -o page.html", "page.html", (_IMPORT,)),
    "train": Command(f"graphtool train t {_DATA}", "run", (
        _IMPORT, _GRAD, "graphtool build t.graph.json -o t --name digits"), same=False),
    "trainer": Command(f"t/digits {_DATA}", "run", (
        _IMPORT, _GRAD, "graphtool build t.graph.json -o t --name digits --exe"), same=False),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--commands", default=",".join(COMMANDS), help="separated by commas")
    parser.add_argument("--points", type=int, default=6, help="of each kind of call, at most")
    parser.add_argument("--at-once", type=int, default=20, help="builds on one cold cache")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("faults.jsonl"), lambda r: (r["command"], r["fault"], r["at"]))
    for name in options.commands.split(","):
        with tempfile.TemporaryDirectory(prefix="graphtool-faults-") as folder:
            for row in faults(name, COMMANDS[name], Path(folder), options.points):
                journal.add({**row, **work.stamp()})
                if row["outcome"] not in GOOD:
                    print(row, flush=True)
        print(f"{name}: done", flush=True)
    if options.at_once:
        with tempfile.TemporaryDirectory(prefix="graphtool-faults-") as folder:
            journal.add({**at_once(Path(folder), options.at_once), **work.stamp()})
    rows = list(journal.rows().values())
    work.results("faults.md").write_text(report(rows, options.command_line))
    print(work.results("faults.md").read_text())
    return sum(r["outcome"] not in GOOD for r in rows)


def faults(name: str, command: Command, folder: Path, points: int) -> Iterator[Row]:
    """A row for each fault that was tried: what became of the artifact and of the next try."""
    for line in command.before:
        _run(line, folder).check_returncode()
    _run(command.line, folder).check_returncode()
    state = folder / "state"
    whole = _digest(folder / command.writes)
    state.mkdir()
    _copy(folder / command.writes, state / "old")
    for calls in CALLS:
        count = _count(command, folder, calls, state)
        for how, rule in HOW.items():
            for at in sorted({1 + count * k // points for k in range(points)} if count else ()):
                done = _traced(command, folder, f"{calls}:{rule.format(at)}", state)
                outcome = _judged(done, command, folder, how, whole)
                yield {"command": name, "fault": f"{how} in {calls.split(',')[0]}", "at": at,
                       "outcome": outcome}


def _count(command: Command, folder: Path, calls: str, state: Path) -> int:
    """How many of these calls the process that makes most of them makes."""
    _traced(command, folder, "", state, calls)
    who = Counter(line.split()[0] for line in (folder / "trace").read_text().splitlines()
                  if "(" in line)
    return max(who.values(), default=0)


def _traced(command: Command, folder: Path, rule: str, state: Path, calls: str = "",
            ) -> subprocess.CompletedProcess[str]:
    """The command under strace, from the state of before, with a cache that is as good as empty."""
    _copy(state / "old", folder / command.writes)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    what = ["-e", f"inject={rule}"] if rule else []
    trace = rule.split(":")[0] if rule else calls
    quick = "" if "signal" in rule else "--seccomp-bpf"  # with which no signal is sent
    return _run(f"strace -f -qq {quick} -y -o trace -e trace={trace} {' '.join(what)} "
                f"{command.line}", folder)


def _judged(done: subprocess.CompletedProcess[str], command: Command, folder: Path, how: str,
            whole: dict[str, str]) -> str:
    """`refused`, `done`, `killed` where all is as it should be, else what is not."""
    hit = [x for x in (folder / "trace").read_text().splitlines() if "INJECTED" in x]
    if how != "kill" and any(re.search(r"\((1|2|\d+<pipe|\d+<socket)", x) for x in hit):
        return "done"  # what it had to say could not be said
    artifact = _digest(folder / command.writes)
    if command.same and artifact != whole:
        return f"neither the old artifact nor the new one: {_differ(artifact, whole)}"
    if "Traceback" in done.stderr:
        return f"traceback: {done.stderr.strip().splitlines()[-1][:120]}"
    codes = re.findall(r"error\[(GT\d+)\]", done.stderr)
    if done.returncode > 0 and len(codes) != 1 and not command.line.startswith("t/"):
        return f"exit code {done.returncode} with {len(codes)} errors: {done.stderr[-160:]}"
    if codes in (["GT9999"], ["GT0001"]):
        return f"internal error: {done.stderr[:160]}"
    again = _run(command.line, folder)
    if again.returncode:
        return f"the next run fails: {again.stderr[-160:]}"
    after = _digest(folder / command.writes)
    if (command.same and after != whole) or set(after) != set(whole):
        return f"the next run leaves something else: {_differ(after, whole)}"
    if how == "kill" and done.returncode in (-9, 137):
        return "killed"
    return "refused" if done.returncode else "done"


def at_once(folder: Path, number: int) -> Row:
    """Builds of one model at the same time, with one cold cache: the same files from all."""
    _run(_IMPORT, folder).check_returncode()
    started = [subprocess.Popen(["graphtool", "build", "m.graph.json", "-o", f"b{i}"], cwd=folder,
                                env=_environment(folder), stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True) for i in range(number)]
    said = [(p.communicate()[1], p.returncode) for p in started]
    wrong = [text[-160:] for text, code in said if code]
    trees = {json.dumps(_digest(folder / f"b{i}")) for i in range(number)}
    outcome = "done" if not wrong and len(trees) == 1 else f"{len(trees)} results; {wrong[:1]}"
    return {"command": f"{number} builds", "fault": "one cold cache", "at": 0, "outcome": outcome}


def _run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line.format(samples=SAMPLES).split(), cwd=folder, capture_output=True,
                          text=True, timeout=SECONDS, env=_environment(folder))


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}


def _copy(source: Path, to: Path) -> None:
    shutil.rmtree(to, ignore_errors=True)
    to.unlink(missing_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copy2)(source, to)


def _digest(path: Path) -> dict[str, str]:
    """Each file of an artifact with a digest of what it has."""
    files = [p for p in sorted(path.rglob("*")) if p.is_file()] if path.is_dir() else [path]
    return {str(p.relative_to(path)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in files if p.exists()}


def _differ(one: dict[str, str], other: dict[str, str]) -> str:
    names = sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))
    return ", ".join(names)[:120]


def report(rows: list[Row], command: str) -> str:
    """Tried, held and what did not hold, by command."""
    lines = []
    for name in dict.fromkeys(r["command"] for r in rows):
        counts = Counter(r["outcome"] if r["outcome"] in GOOD else "other"
                         for r in rows if r["command"] == name)
        lines.append([name, str(sum(counts.values())),
                      *(str(counts[k]) for k in (*GOOD, "other"))])
    rest = [f"* {r['command']}, {r['fault']}, call {r['at']}: {r['outcome']}" for r in rows
            if r["outcome"] not in GOOD]
    at = work.stamp()
    return "\n".join([
        "# Commands under faults", "", f"`{command}`, {at['date']}, {at['cpu']}.", "",
        "Refused: one error with a code, the old artifact stays. Done: the command got along "
        "without the call. In all of them the same command works afterwards.", "",
        tables.markdown(["command", "tried", *GOOD, "other"], lines), *rest, ""])
