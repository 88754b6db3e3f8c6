"""Every composite comes apart into primitives that compute the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.ir.op import OPS
from graphtool.passes import run
from graphtool.passes.decompose import whole
from tests.passes.pass_samples import SAMPLES, assert_same, module

COMPOSITES = {n for n, op in OPS.items() if Trait.COMPOSITE in op.traits}


def names(m: Any) -> set[str]:
    return {n.op.name for n in m.graph.nodes}


@pytest.mark.parametrize("sample", SAMPLES)
def test_none_is_left(sample: str) -> None:
    new = run(SAMPLES[sample], "decompose{keep=}")
    assert not names(new) & COMPOSITES
    assert_same(SAMPLES[sample], new)


@pytest.mark.parametrize("composite", [
    lambda x: o.gelu(x), lambda x: o.gelu(x, approximate="tanh"), lambda x: o.silu(x),
    lambda x: o.softmax(x, axis=1), lambda x: o.log_softmax(x, axis=0), lambda x: o.relu(x)])
def test_recognise_puts_together(composite: Callable[..., Any]) -> None:
    m = module(composite, "f32[3,4]")
    assert names(run(run(m, "decompose{keep=}"), "recognise")) == names(m)


def test_keeps_what_the_caller_names() -> None:
    new = run(SAMPLES["block"], "decompose{keep=attention+softmax}")
    assert names(new) & COMPOSITES == {"attention"}


def test_keeps_kernels_by_default() -> None:
    kept = names(run(SAMPLES["block"], "decompose")) & COMPOSITES
    assert kept == {n for n in names(SAMPLES["block"]) & COMPOSITES if whole(OPS[n])}
