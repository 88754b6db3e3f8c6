"""NaN and infinities stay where the model makes them, unless a kernel declares that it assumes
finite numbers: every rule, op and kernel is run on inputs that hold some.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool.analysis import made_up
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError, UsageError
from graphtool.io.manifest import read_manifest
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import Rules, rules_of
from graphtool.native import runtime
from graphtool.target import Target, named
from tests.cases import CASES, Case
from tests.kernels.special_numbers import FINITE, MODELS, laden, moved
from tests.lower.compiling import merged

TEXTS = sorted((Path(__file__).parents[1] / "passes").glob("*/*.txt"))
# passes after which other inputs are wanted; and one whose results are others: a scale that is
# computed from a row with a NaN is NaN
OTHERS = {"specialize", "distribute", "quantise", "cache", "step"}
SAFE = rules_of(assume="nothing")
# computed sizes; whole numbers out of NaN; what Python's math refuses; a table that is no data
UNFIT = {"nonzero", "unique", "compress", "polygamma", "fft"}


def ready(module: Module, target: Target, rules: Rules) -> Module:
    return passes.run(module, None, supply={"target": target, "rules": rules})


@pytest.mark.part(9)
@pytest.mark.parametrize("march", ["x86-64-v3", "native"])
@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_keeps_the_places_or_says_that_it_does_not(name: str, march: str,
                                                            tmp_path: Path) -> None:
    module, target = MODELS[name], named(march)
    for rules in (rules_of(), SAFE):
        path = build(ready(module, target, rules), tmp_path / rules.assume, target=target)
        said, model = read_manifest(path), runtime.load(path)
        assert said.assumes == ("finite" if any(s.assumes == "finite" for s in said.steps)
                                else "nothing")
        found = []
        for seed in range(6):
            x = laden(made_up.random_inputs(module, 0), seed, 0.02 if name == "few bits" else 0.004)
            if name == "by weights":  # what lies behind the last window of the first tap
                next(iter(x.values()))[:, :, 0, -1] = np.nan
            found += moved(model.run(x), interp.run(module, x))
        if rules is SAFE or name not in FINITE:
            assert said.assumes == "nothing" or march == "native"
            assert rules is not SAFE or said.assumes == "nothing"
            assert found == [] or said.assumes == "finite"
        elif march == "native":  # another kernel can be the fastest here
            assert found == [] or said.assumes == "finite"
        else:  # declared, and not for nothing
            assert said.assumes == "finite" and found


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_rule_keeps_the_places(path: Path) -> None:
    """The graphs of the files that show each rule, before and after their pass."""
    head, _, body = path.read_text().partition("\n\n")
    words = shlex.split(head)
    names = words[words.index("--passes") + 1] if "--passes" in words else None
    if names is None or OTHERS & set(re.findall(r"\w+", names)):
        return
    for part in body.split("===\n"):
        before = serial.loads(part.partition("---\n")[0])
        try:
            after = passes.run(before, names, supply={"rules": SAFE, "target": named("x86-64-v3")})
        except GraphtoolError:  # the file shows an error
            continue
        for seed in range(4):
            x = laden(made_up.random_inputs(before, 0), seed, 0.05)
            assert moved(interp.run(after, x), interp.run(before, x)) == []


def tried(cases: list[Case]) -> tuple[Module, dict[str, np.ndarray]]:
    return merged([c for c in cases if c.op.name not in UNFIT])


@pytest.mark.long
def test_every_op_keeps_the_places_through_the_passes() -> None:
    module, inputs = tried(CASES)
    after = ready(module, named("x86-64-v3"), SAFE)
    for seed in range(3):
        x = laden(inputs, seed, 0.04)
        assert moved(interp.run(after, x), interp.run(module, x)) == []


@pytest.mark.parametrize("start", [4, *(pytest.param(i, marks=pytest.mark.slow)
                                        for i in range(8) if i != 4)])
@pytest.mark.parametrize("march", ["x86-64-v3", pytest.param("x86-64", marks=pytest.mark.slow)])
def test_every_op_keeps_the_places_in_c(start: int, march: str, tmp_path: Path) -> None:
    module, inputs = tried(CASES[start::8])
    target = named(march)
    model = runtime.load(build(ready(module, target, SAFE), tmp_path / "m", target=target))
    for seed in range(3):
        x = laden(inputs, seed, 0.04)
        assert moved(any_of_a_line(model.run(x)), any_of_a_line(interp.run(module, x))) == []


def any_of_a_line(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of Fourier transforms NaN for a whole line with a NaN or an infinity: which of its numbers
    are NaN, infinite or 0·∞ = 0 depends on the way that they are summed up."""
    return {name: np.where(np.isfinite(x).all(-1, keepdims=True), x, np.nan)
            if name.startswith("fourier") else x for name, x in arrays.items()}


def test_nothing_is_assumed_in_strict() -> None:
    assert rules_of("strict").assume == rules_of("strict", assume="finite").assume == "nothing"
    assert rules_of().assume == rules_of("fast").assume == "finite"
    with pytest.raises(UsageError, match="unknown assumption 'all'") as caught:
        rules_of(assume="all")
    assert caught.value.code == "GT0635"
