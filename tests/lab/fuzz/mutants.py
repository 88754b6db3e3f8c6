"""Mutated programs: what the reader of programs accepts is compiled, and must be memory-safe.

A seed is a program, be it a file of every format's samples or one made of a random graph, with a
few numbers changed, or with any other change of its document. A fault means that the verifier
accepts what it should refuse. The file of a fault is kept in fuzz/ of the work folder.
"""

from __future__ import annotations

import hashlib
import random
import re
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import graphtool.kernels  # noqa: F401  (fills the table of contracts)
from benchmarks import jobs
from graphtool.compile.weights import weights_of
from graphtool.errors import GraphtoolError
from graphtool.importers.onnx import import_model
from graphtool.io.weights import Weight
from graphtool.ir.serial import collect_all
from graphtool.loops import serial
from graphtool.target import detect
from tests.lab.fuzz import grow
from tests.lab.fuzz.artifact_kinds import GOLDEN
from tests.lab.fuzz.compiled import in_c
from tests.lab.fuzz.exact import outcome, texts
from tests.lab.fuzz.judged import SECONDS, code, kept
from tests.lab.fuzz.mutations import json_mutation
from tests.lab.fuzz.outcome import Finding, Outcome
from tests.lab.fuzz.processes import Span, Tell
from tests.lab.fuzz.variants import variant_of
from tests.lab.suite.limits import limited

SIZE = 48  # seeds of a span
MARCHES = {4: "x86-64", 8: "x86-64-v3", 16: "x86-64-v4"}  # by the floats of a vector
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Sample:
    """A program's text, its weights by digest, and the operators that it has."""

    name: str
    text: str
    store: Mapping[str, Weight]
    march: str = "x86-64-v3"
    ops: tuple[str, ...] = ()


@cache
def golden() -> list[Sample]:
    """The programs of all kernels that are kept as files, if this machine runs their vectors."""
    out = []
    for path in sorted((GOLDEN / "program/v1").glob("*.program.json")):
        found, weights = serial.load(path)
        lanes, name = int(found.meta.get("lanes", 8)), path.name.split(".")[0]
        if lanes <= detect().lanes:
            out.append(Sample(name, serial.dumps(found), weights, MARCHES[lanes],
                              (f"file {name}",)))
    return out


def grown(seed: int) -> Sample:
    """The program of a random graph. Raises GraphtoolError if there is none."""
    case, variant = grow.case(seed), variant_of(seed)
    made = in_c(import_model(case.model), variant, "model")
    return Sample("graph", serial.dumps(made.program),
                  {w.digest: w for w in collect_all(made.module.graph)}, variant.march, case.typed)


def sample_of(seed: int) -> Sample:
    """What is mutated: a file and a random graph by turns. Raises GraphtoolError."""
    files = golden()
    return grown(seed) if seed % 2 else files[seed // 2 % len(files)]


def mutant(text: str, rng: random.Random) -> str:
    """The program with a few numbers changed, or with any other change of its document.

    Only few of the latter are accepted, so most changes are those of numbers.
    """
    if rng.random() < 0.15:
        return json_mutation(text, rng)
    at = text.index('"dims"') if '"dims"' in text else 0
    for _ in range(rng.choice((1, 1, 1, 2))):
        m = rng.choice(list(_NUMBER.finditer(text, at)))
        n = int(m[0])
        new = rng.choice((n + 1, n - 1, n * 2, n // 2, 0, 1, n + 3, n * 16, n + 64, n - 64))
        text = f"{text[:m.start()]}{new}{text[m.end():]}"
    return text


def work(span: Span, tell: Tell, sanitizers: str) -> Outcome:
    """The outcome of a span."""
    warnings.simplefilter("ignore")
    out, start = Outcome(), time.perf_counter()
    for seed in range(*span):
        tell(seed)
        try:
            with limited(SECONDS):
                sample = sample_of(seed)
        except (GraphtoolError, TimeoutError) as error:
            out.statuses["skipped"] += 1
            out.reasons[f"skipped: no program of the graph: {code(error)}"] += 1
        else:
            try_mutant(seed, sample, sanitizers, out)
    out.seconds["compiled"] = time.perf_counter() - start
    return out


def try_mutant(seed: int, sample: Sample, sanitizers: str, out: Outcome) -> None:
    """Add to the outcome what becomes of one mutant of the sample.

    It is refused, or its C is that of the sample ("same"), or it runs: clean, slow, or with a
    fault.
    """
    text = mutant(sample.text, random.Random(seed))
    try:
        with limited(SECONDS):
            program = serial.loads(text)
            made = list(texts(program, weights_of(program, sample.store)))
    except GraphtoolError as error:
        out.statuses["refused"] += 1
        out.reasons[f"refused: {error.code}"] += 1
        return
    except Exception as error:
        blame(seed, sample, code(error), jobs.short(error), text, out)
        return
    if digests(made) == digests(own_texts(sample)):
        out.statuses["same"] += 1
        return
    said = [one for files in made if (one := ran(files, sample.march, sanitizers)) != "clean"]
    out.compiled[sample.march] += 1
    out.ops.update(sample.ops)
    faults = [one for one in said if one != "slow"]
    if faults:
        blame(seed, sample, faults[0].split("\n")[0][:100], faults[0], text, out)
    else:
        out.statuses["slow" if said else "clean"] += 1


def own_texts(sample: Sample) -> list[dict[str, str | bytes]]:
    """The C of the program that nothing was changed of."""
    program = serial.loads(sample.text)
    return list(texts(program, weights_of(program, sample.store)))


def digests(made: Sequence[Mapping[str, str | bytes]]) -> list[str]:
    """A digest of each set of files."""
    return [hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest() for files in made]


def ran(files: Mapping[str, str | bytes], march: str, sanitizers: str) -> str:
    """The outcome of some files in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="graphtool-fuzz-") as name:
        return outcome(files, march, sanitizers, Path(name))


def blame(seed: int, sample: Sample, cause: str, said: str, text: str, out: Outcome) -> None:
    """Note a fault, and keep the mutant and the weights that it was run with."""
    out.statuses["wrong"] += 1
    out.findings.append(Finding(seed, f"{sample.name}: {cause}", said))
    kept(seed, ".program.json").write_text(text, errors="surrogatepass")
