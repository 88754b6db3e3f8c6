"""The table of the GPU benchmark: times beside torch where there are some, and the facts of the
compiled kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchmarks import gpu_facts, gpu_run, stats, tables, work
from benchmarks.gpu import CASES
from benchmarks.gpu_facts import ARCHITECTURES
from benchmarks.gpu_peers import PEERS
from benchmarks.stats import OURS
from benchmarks.work import Row

Rows = Mapping[tuple[str, str], Row]
# the geometric mean of the ratio that is the goal, and the least ratio
GOALS = {("batch 1", "float32"): (2.0, 1.2), ("batch 1", "bf16"): (1.3, 1.0),
         ("batch 16, 32", "float32"): (1.5, 0.0), ("batch 16, 32", "bf16"): (0.9, 0.0),
         ("training", "float32"): (1.5, 0.0), ("training", "bf16"): (1.0, 0.0)}


def report(command: str) -> int:
    """Write results/gpu.md; returns 0."""
    text = markdown(gpu_run.journal().rows(), gpu_facts.stored(), command)
    work.results("gpu.md").write_text(text)
    print(text + f"\n{work.results('gpu.md')} written")
    return 0


def markdown(rows: Rows, facts: Mapping[str, Row], command: str = "") -> str:
    """The report; without any times it says so."""
    timed = any("median" in row for row in rows.values())
    head = ["# Libraries for a GPU beside torch", "", *(
        _times(rows) if timed else
        ["No GPU was at hand, so there are no times: what follows is what the compilers made of "
         "the kernels. `python -m benchmarks gpu --prepare` compiles the cases, `--run` measures "
         "them on a machine with a GPU in eight minutes, and `--report` writes its times here.",
         ""])]
    return "\n".join([*head, *_facts(facts), *([f"Command: `{command}`.", ""] if command else [])])


def group_of(case: str) -> tuple[str, str]:
    """What the goal calls the kind of a case, and its type."""
    name, _, dtype = case.partition(".")
    large = name.endswith(("_b16", "_b32"))
    return ("training" if name.startswith("train_") else "batch 16, 32" if large else "batch 1",
            dtype)


def _times(rows: Rows) -> list[str]:
    machine = rows.get(("machine", ""), {})
    out = [f"{machine.get('date', '')}, {machine.get('gpu', '')}, torch "
           f"{machine.get('torch') or 'missing'}. Microseconds of a call, until the device is "
           "done: median of three rounds. graphtool is the library called as from C, its arrays "
           "on the device; eager and compile are torch, recorded in a CUDA graph. The ratio is the "
           "best peer's time over graphtool's. `error` is the largest relative rms difference of "
           "an output from the evaluator on a processor.", ""]
    for group, goal in GOALS.items():
        cases = [c for c in CASES if group_of(c) == group]
        table, ratios = _table(rows, [c for c in cases if any((c, n) in rows for n in PEERS)])
        mean = (f"Geometric mean of the ratio over {len(ratios)} cases: "
                f"{stats.geometric_mean(ratios):.2f}; least {min(ratios):.2f}. " if ratios else "")
        out += [f"## {group[0]}, {group[1]}", "", table, f"{mean}Goal: {goal[0]}"
                + (f", and none below {goal[1]}" if goal[1] else "") + ".", ""]
    return [*out, *_failures(rows)]


def _table(rows: Rows, cases: Iterable[str]) -> tuple[str, list[float]]:
    body, ratios = [], []
    for case in cases:
        found = {name: rows.get((case, name), {}) for name in PEERS}
        times = {name: row["median"] for name, row in found.items() if "median" in row}
        ratio, peer = stats.ratio(times), stats.best_peer(times)
        ratios += [ratio] if ratio else []
        body.append([case.partition(".")[0],
                     *(tables.number(1e3 * times[n] if n in times else None, 4) for n in PEERS),
                     peer[0] if peer else tables.GAP, tables.number(ratio),
                     tables.error(found[OURS].get("error_rms"))])
    return tables.markdown(["case", *PEERS, "best peer", "ratio", "error"], body), ratios


def _failures(rows: Rows) -> list[str]:
    said = [f"* {case} by {name}: {row['said']}" for (case, name), row in rows.items()
            if "said" in row]
    failed = [f"* {case} by {name}: {row['error']}" for (case, name), row in rows.items()
              if "error" in row]
    out = ["## compute-sanitizer", "", *said, ""] if said else []
    return out + (["## Failures", "", *failed, ""] if failed else [])


# ---- compiled kernels ---------------------------------------------------------------------------


def _facts(facts: Mapping[str, Row]) -> list[str]:
    good = {case: row for case, row in facts.items() if "kernels" in row}
    if not good:
        return []
    names = ", ".join(f"sm_{a}" for a in ARCHITECTURES)
    return ["## Compiled kernels", "",
            f"For {names}, separated by slashes, or for the one that has a size below. Registers "
            "of a thread, bytes of the stack and of shared memory are the most of any kernel in "
            "the row; instructions are those in the code of all of them (HMMA, IMMA, HGMMA and "
            "IGMMA multiply matrices, LDGSTS and UBLKCP copy into shared memory, LDSM reads "
            "squares from there, STL and LDL would be registers that are kept in memory). An "
            "instruction that a case lacks is left out.", "",
            _kernels(good), "## Code, KB", "",
            tables.markdown(["case", *(f"sm_{a}" for a in ARCHITECTURES)],
                            [[case, *(_kilobytes(row["sizes"].get(str(a))) for a in ARCHITECTURES)]
                             for case, row in good.items()])]


def _kilobytes(size: int | None) -> str:
    return tables.GAP if size is None else str(size // 1000)


def _kernels(facts: Mapping[str, Row]) -> str:
    counted = [c for c in gpu_facts.COUNTED
               if any(c in k for row in facts.values() for k in row["kernels"])]
    body = []
    for case, row in facts.items():
        for template in sorted({k["template"] for k in row["kernels"]}):
            sets = [[k for k in row["kernels"] if k["template"] == template and k["arch"] == a]
                    for a in ARCHITECTURES if str(a) in row["sizes"]]
            body.append([case, template, str(len(sets[0])),
                         *("/".join(str(max(k[key] for k in kernels)) for kernels in sets)
                           for key in ("registers", "stack", "shared")),
                         *(_slashed([sum(k.get(c, 0) for k in kernels) for kernels in sets])
                           for c in counted)])
    return tables.markdown(["case", "kernel", "count", "registers", "stack", "shared", *counted],
                           body)


def _slashed(counts: list[int]) -> str:
    return str(counts[0]) if len(set(counts)) == 1 else "/".join(map(str, counts))
