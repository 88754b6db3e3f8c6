"""torch's own sample inputs through export: the evaluator and compiled C beside torch itself.

Each op runs in a child that starts again where one op brings it down; rows go to a journal.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmarks import tables, work
from benchmarks.work import Journal, Row

HEAD = ("op", "types", "samples", "evaluator", "C", "refused", "why, or what differs")
LIMIT = 300  # seconds for one op in one type


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=int, default=16, help="of each op and element type")
    parser.add_argument("--ops", type=lambda s: s.split(","), help="these only")
    parser.add_argument("--redo", choices=("all", "bad"), help="do again what is in the journal")
    parser.add_argument("--eval-only", action="store_true", help="compile nothing")


def main(options: argparse.Namespace) -> int:
    journal = Journal(work.results("opinfo.jsonl"), lambda r: (r["op"], r["dtype"]))
    names = options.ops or order()
    have = journal.rows()
    if options.redo != "all":
        fine = {op for op, _ in have} - ({op for (op, _), r in have.items() if bad(r)}
                                         if options.redo else set())
        names = [n for n in names if n not in fine]
    for row in run(names, options.samples, not options.eval_only):
        journal.add({**row, **work.stamp()})
        print(line(row), flush=True)
    rows = list(journal.rows().values())
    work.results("opinfo.md").write_text(report(rows, options.command_line))
    work.results("opinfo_exceptions.json").write_text(
        json.dumps(exceptions(rows), indent=1, ensure_ascii=False) + "\n")
    print(f"{work.results('opinfo.md')} written")
    return sum(bad(r) for r in rows)


def exceptions(rows: Sequence[Row]) -> dict[str, list[str]]:
    """For each op that is not whole, the reasons: of a refusal, or of what differs."""
    found: dict[str, set[str]] = {}
    for row in rows:
        why = {*row["reasons"], *(["its results differ"] if bad(row) else [])}
        if why:
            found.setdefault(row["op"], set()).update(why)
    return {op: sorted(why) for op, why in sorted(found.items())}


def order() -> list[str]:
    """Every op of the database, those first that core ATen has under the same name."""
    import torch

    from tests.lab.opinfo_samples import infos
    core = {name for name in dir(torch.ops.aten) for packet in [getattr(torch.ops.aten, name)]
            if isinstance(packet, torch._ops.OpOverloadPacket)
            and any(torch.Tag.core in getattr(packet, o).tags for o in packet.overloads())}

    def rank(name: str) -> int:
        return 0 if name.split(".")[0] in core else 1 if name.startswith("nn.") else 2
    return sorted(infos(), key=rank)


def bad(row: Row) -> bool:
    return bool(row.get("eval_wrong") or row.get("c_wrong") or row.get("crashed"))


def run(names: Sequence[str], limit: int, compiled: bool) -> Iterator[Row]:
    """The rows of the ops, one worker after another."""
    left = list(names)
    while left:
        with tempfile.TemporaryDirectory(prefix="graphtool-opinfo-") as folder:
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.lab.opinfo_worker", str(limit),
                 folder if compiled else "-", *left], stdout=subprocess.PIPE, text=True)
            for text in _lines(child):
                row = json.loads(text)
                if "done" in row:
                    left.remove(row["done"])
                else:
                    yield row
            child.kill()
            if left and child.wait() != 0:
                yield {"op": left[0], "dtype": "all", "samples": 0, "crashed": child.returncode,
                       "reasons": {}, "wrong": [f"the process ended with {child.returncode}"]}
                left = left[1:]


def _lines(child: subprocess.Popen[str]) -> Iterator[str]:
    """What the child says, until it ends or says nothing for too long."""
    said: queue.Queue[str | None] = queue.Queue()

    def listen() -> None:
        assert child.stdout
        for text in child.stdout:
            said.put(text)
        child.wait()
        said.put(None)
    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            text = said.get(timeout=LIMIT)
        except queue.Empty:
            return
        if text is None:
            return
        yield text


# ---- the table ---------------------------------------------------------------------------------

def line(row: Row) -> str:
    return " ".join([row["op"], row["dtype"], *(f"{k}={row[k]}" for k in (
        "samples", "eval_ok", "eval_wrong", "c_ok", "c_wrong", "refused") if k in row),
        *row["wrong"][:2], *row["reasons"]])


def report(rows: Sequence[Row], command: str = "") -> str:
    """Totals, then a line for each op: what is fine in few words, what is not with its reason."""
    by_op: dict[str, list[Row]] = {}
    for row in rows:
        by_op.setdefault(row["op"], []).append(row)
    total = Counter[str]()
    for row in rows:
        total.update({k: v for k, v in row.items() if isinstance(v, int)})
    runs = {m: total[f"{m}_ok"] + total[f"{m}_wrong"] for m in ("eval", "c")}
    whole = sum(all(not r.get("refused") and not bad(r) for r in rs) for rs in by_op.values())
    return "\n".join([
        "# torch's OpInfo samples through export", "",
        f"`{command}`; torch's sample inputs in float32, float64, int64 and bool, compared with "
        "torch itself (2e-4 in float32, 1e-7 in float64, else exactly).", "",
        f"{len(by_op)} ops, {total['samples']} samples: evaluator {total['eval_ok']} of "
        f"{runs['eval']}, compiled C {total['c_ok']} of {runs['c']}, refused by name "
        f"{total['refused']}; {whole} ops pass whole.", "",
        tables.markdown(HEAD, [_cells(op, rs) for op, rs in sorted(by_op.items())])])


def _cells(op: str, rows: Sequence[Row]) -> list[str]:
    count = Counter[str]()
    for r in rows:
        count.update({k: v for k, v in r.items() if isinstance(v, int)})
    why = list(dict.fromkeys(w for r in rows for w in (*r["wrong"][:1], *r["reasons"])))
    ran = {m: count[f"{m}_ok"] + count[f"{m}_wrong"] for m in ("eval", "c")}
    return [op, " ".join(_short(r["dtype"]) for r in rows), str(count["samples"]),
            f"{count['eval_ok']}/{ran['eval']}", f"{count['c_ok']}/{ran['c']}",
            str(count["refused"]), "; ".join(why[:2])[:240]]


def _short(dtype: str) -> str:
    return {"float32": "f32", "float64": "f64", "int64": "i64"}.get(dtype, dtype)
