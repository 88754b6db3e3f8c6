"""Random ONNX graphs compiled under sanitizers, in the variant of their seed."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks import jobs
from graphtool.errors import CompilerError, GraphtoolError
from graphtool.importers.onnx import import_model
from graphtool.target import named
from tests.lab.fuzz import grow
from tests.lab.fuzz.compiled import in_c
from tests.lab.fuzz.judged import SECONDS, code
from tests.lab.fuzz.outcome import Finding, Outcome
from tests.lab.fuzz.processes import Span, Tell
from tests.lab.fuzz.variants import Variant, variant_of
from tests.lab.fuzz.watched import Ready, watched
from tests.lab.suite.limits import limited


def work(span: Span, tell: Tell, sanitizers: str, only: tuple[str, ...] = ()) -> Outcome:
    """The outcome of a span: all its graphs that can be compiled."""
    warnings.simplefilter("ignore")
    out, start = Outcome(), time.perf_counter()
    ready: dict[Variant, list[tuple[int, Ready]]] = defaultdict(list)
    for seed in range(*span):
        tell(seed)
        case = grow.case(seed, only)
        try:
            with limited(SECONDS):
                made = in_c(import_model(case.model), variant_of(seed), f"f{seed}")
        except GraphtoolError as error:
            out.statuses["refused"] += 1
            out.reasons[f"refused: {error.code}"] += 1
        except Exception as error:
            out.statuses["wrong"] += 1
            out.findings.append(Finding(seed, code(error), jobs.short(error)))
        else:
            out.ops.update(case.typed)
            ready[variant_of(seed)].append((seed, (case.inputs, made)))
    for variant, those in ready.items():
        faults = found(those, variant, sanitizers)
        out.compiled[variant.name] += len(those)
        out.statuses["clean"] += len(those) - len(faults)
        out.statuses["wrong"] += len(faults)
        out.findings += [Finding(s, f"{sanitizers}: {why}") for s, why in faults.items()]
    out.seconds["compiled"] = time.perf_counter() - start
    return out


def found(those: Sequence[tuple[int, Ready]], variant: Variant, sanitizers: str) -> dict[int, str]:
    """What the sanitizers say, by seed; compiled together, or in halves where that fails."""
    with tempfile.TemporaryDirectory(prefix="graphtool-fuzz-") as folder:
        try:
            said = watched([r for _, r in those], Path(folder), named(variant.march), sanitizers)
        except CompilerError as error:
            if len(those) == 1:
                return {those[0][0]: f"not compiled: {error.message[:80]}"}
            half = len(those) // 2
            return found(those[:half], variant, sanitizers) | found(those[half:], variant,
                                                                    sanitizers)
    return {int(name[1:]): why for name, why in said.items()}
