"""Every composite comes apart into primitives that compute the same."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import ops as o
from graphtool.errors import UsageError
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


def test_keeps_what_the_caller_names() -> None:
    new = run(SAMPLES["block"], "decompose{keep=attention+softmax}")
    assert names(new) & COMPOSITES == {"attention"}


def test_keeps_kernels_by_default() -> None:
    kept = names(run(SAMPLES["block"], "decompose")) & COMPOSITES
    assert kept == {n for n in names(SAMPLES["block"]) & COMPOSITES if whole(OPS[n])}


def test_names_come_from_the_root() -> None:
    new = run(module(lambda x: o.softmax(x, axis=1), "f32[2,3]"), "decompose{keep=}")
    assert [n.outputs[0].hint for n in new.graph.nodes] == [
        "softmax.reduce_max", "softmax.sub", "softmax.exp", "softmax.reduce_sum", "softmax"]


def test_unknown_op() -> None:
    with pytest.raises(UsageError, match="no op 'nonsense'"):
        run(SAMPLES["block"], "decompose{keep=nonsense}")
