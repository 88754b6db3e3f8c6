"""What became of a case, and the check of the passes, whatever the case was made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs, work
from graphtool import interp
from graphtool.assume import Assumption
from graphtool.errors import GraphtoolError
from graphtool.ir import serial
from graphtool.ir.graph import Module, is_constant
from graphtool.verify.reducer import Reducer
from tests.lab.fuzz.compare import amplified, differing
from tests.lab.fuzz.growing import Seeded
from tests.lab.fuzz.outcome import Finding, Outcome
from tests.lab.fuzz.variants import Variant, optimised, variant_of
from tests.lab.suite.limits import limited

Array = np.ndarray[Any, Any]
SECONDS, TRIES = 20, 60


@dataclass
class Evaluated:
    """What became of a case; `module` is there if it can be compiled."""

    case: Seeded
    status: str = "right"
    why: str = ""
    findings: list[Finding] = field(default_factory=list)
    module: Module | None = None
    ready: Module | None = None  # what the passes make of it
    want: dict[str, Array] = field(default_factory=dict)
    assume: Assumption = "finite"  # of the numbers that it computes

    @property
    def variant(self) -> Variant:
        """How its seed is compiled."""
        return replace(variant_of(self.case.seed), assume=self.assume)

    def blame(self, cause: str, text: str = "") -> None:
        """Note a difference."""
        self.findings.append(Finding(self.case.seed, cause, text))


def count(found: Iterable[Evaluated], out: Outcome) -> None:
    """Add what became of the cases to the outcome."""
    for e in found:
        out.statuses["wrong" if e.findings else e.status] += 1
        out.ops.update(e.case.typed)
        out.findings += e.findings
        if e.why and e.status != "wrong":
            out.reasons[f"{e.status}: {e.why}"] += 1


def after_passes(found: Evaluated) -> None:
    """The evaluator after the passes of its variant, beside itself before them."""
    assert found.module is not None
    case, module = found.case, found.module

    def results(m: Module, inputs: Any) -> dict[str, Array]:
        return interp.run(optimised(m, found.variant), inputs)
    try:
        with limited(SECONDS):
            found.ready = optimised(module, found.variant)
            wrong = unlike(module, case.inputs, found.want, interp.run(found.ready, case.inputs))
    except Exception as error:
        found.status = "wrong"
        small = reduced(found, results, code(error))
        found.blame(f"passes: {code(error)}: {small}", jobs.short(error))
        found.module = None
        return
    if wrong:
        small = reduced(found, results)
        found.status = "wrong"
        found.blame(f"passes: {wrong}: {small}", ", ".join(case.ops))


def unlike(module: Module, inputs: Any, want: dict[str, Array], got: dict[str, Array]) -> str:
    """The kind of the first difference that roundings do not explain."""
    if differing(got, want, len(module.graph.nodes)):
        still = differing(got, want, len(module.graph.nodes), amplified(module, inputs, want))
        return next(iter(still.values()), "")
    return ""


def reduced(e: Evaluated, results: Any, fails: str = "") -> str:
    """The ops of the smallest slice whose results differ, or fail with that code.

    The slice and its inputs are kept in the work folder: fuzz/SEED.graph.json, SEED.graph.npz.
    """
    module, inputs = e.module, e.case.inputs
    assert module is not None

    def fault(m: Module, xs: Any) -> bool:
        want = interp.run(m, xs)
        try:
            got = results(m, xs)
        except Exception as error:
            return fails != "" and code(error) == fails
        return not fails and bool(unlike(m, xs, want, got))
    try:
        with limited(3 * SECONDS):
            small, needed = Reducer(module, inputs, fault, tries=TRIES).run()
        serial.save(small, kept(e.case.seed, ".graph.json"))
        keep_arrays(e.case.seed, ".graph.npz", needed)
    except (TimeoutError, GraphtoolError):
        return "not reduced"
    return " ".join(sorted({n.op.name for n in small.graph.nodes if not is_constant(n)}))[:120]


def kept(seed: int, ending: str) -> Path:
    """A file of the work folder about a seed."""
    path = work.root() / "fuzz" / f"{seed}{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def keep_arrays(seed: int, ending: str, arrays: Any) -> None:
    """Write arrays by name to a file of the work folder about a seed."""
    np.savez(kept(seed, ending), **arrays)


def code(error: BaseException) -> str:
    """The code of an error of ours, or the kind of another one, which is a crash."""
    return error.code if isinstance(error, GraphtoolError) else f"crash {type(error).__name__}"
