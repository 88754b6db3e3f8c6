"""What holds for each pass on each sample: it verifies, keeps values, and changes nothing twice."""

from __future__ import annotations

import pytest

from graphtool import passes
from tests.passes.pass_samples import SAMPLES, assert_same, text

NAMES = sorted({p.name for p in passes.PASSES if p.default})
REBUILT = {"fuse", "layout", "select"}  # passes that make a new graph where nothing changes
EVERY = pytest.mark.parametrize("sample", SAMPLES)


@EVERY
@pytest.mark.parametrize("name", NAMES)
def test_keeps_values(name: str, sample: str) -> None:
    assert_same(SAMPLES[sample], passes.run(SAMPLES[sample], name))


@EVERY
@pytest.mark.parametrize("name", NAMES)
def test_idempotent(name: str, sample: str) -> None:
    once = passes.run(SAMPLES[sample], name)
    again = passes.run(once, name)
    assert text(again) == text(once)
    assert again.graph is once.graph or name in REBUILT


@EVERY
@pytest.mark.parametrize("name", NAMES)
def test_deterministic(name: str, sample: str) -> None:
    assert text(passes.run(SAMPLES[sample], name)) == text(passes.run(SAMPLES[sample], name))


@EVERY
def test_default_pipeline(sample: str) -> None:
    assert_same(SAMPLES[sample], passes.run(SAMPLES[sample]), rtol=1e-4)
