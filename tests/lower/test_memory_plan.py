"""The arena: what is live at once never overlaps, and little more than that is asked for."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from benchmarks import memory, scaling
from graphtool import dtypes, passes
from graphtool.compile.as_is import build
from graphtool.importers import import_source
from graphtool.io.manifest import read_manifest
from graphtool.loops.liveness import Life, most_at_once, most_live
from graphtool.lower import lower
from graphtool.lower.memory_plan import ALIGN, plan_arena
from graphtool.lower.views import Storage
from graphtool.target import detect

DIGITS = Path(__file__).parents[2] / "samples" / "digits.onnx"


def planned(sizes: list[int], liveness: list[Life]) -> tuple[list[int], int]:
    """Offsets and the arena's size of buffers of float32."""
    buffers = {f"b{i}": Storage(f"b{i}", dtypes.float32, n, "arena") for i, n in enumerate(sizes)}
    offsets, size = plan_arena(buffers, dict(zip(buffers, liveness, strict=True)))
    assert isinstance(size, int)
    return [int(offsets[n]) for n in buffers], size  # type: ignore[call-overload]


@pytest.mark.parametrize("seed", range(20))
def test_what_lives_at_once_is_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(1, 5000, 60)]
    starts = [int(n) for n in rng.integers(0, 40, 60)]
    liveness = [(a, a + int(n)) for a, n in zip(starts, rng.integers(0, 8, 60), strict=True)]
    at, arena = planned(sizes, liveness)
    for i, j in itertools.combinations(range(60), 2):
        if liveness[i][0] <= liveness[j][1] and liveness[j][0] <= liveness[i][1]:
            assert at[i] + sizes[i] * 4 <= at[j] or at[j] + sizes[j] * 4 <= at[i]
    rounded = [-(-n * 4 // ALIGN) * ALIGN for n in sizes]
    least = most_at_once(zip(liveness, rounded, strict=True))
    assert least <= arena <= 1.15 * least
    assert all(a % ALIGN == 0 for a in at)


def test_a_buffer_that_others_wall_in_is_placed_before_them() -> None:
    """By size alone the last one lands on top of two others, though it fits between."""
    k = 1000
    sizes = [8 * k, 6 * k, 6 * k, 5 * k]
    liveness = [(0, 1), (1, 2), (3, 4), (2, 3)]
    assert planned(sizes, liveness)[1] <= 1.01 * 4 * 14 * k


def test_sums_at_one_moment() -> None:
    assert most_at_once([]) == 0
    assert most_at_once([((0, 1), 5), ((1, 3), 7), ((2, 2), 6)]) == 13


def test_the_manifest_says_what_lives(tmp_path: Path) -> None:
    module = passes.run(import_source(str(DIGITS)), "specialize{batch=4}")
    manifest = read_manifest(build(passes.run(module), tmp_path / "b"))
    assert manifest.live is not None and isinstance(manifest.arena, int)
    assert manifest.live <= manifest.arena <= 1.1 * manifest.live


@pytest.mark.parametrize("family", ["mlp-batch", "conv-batch", "conv-size", "encoder-sequence"])
def test_arenas_of_models_are_little_more(family: str) -> None:
    size = scaling.FAMILIES[family].sizes[1]
    program = lower(passes.run(scaling.model(family, size)), detect())
    live = most_live(program)
    assert live is not None and isinstance(program.arena, int)
    assert live <= program.arena <= memory.MOST * live


def test_open_sizes_have_no_figure(tmp_path: Path) -> None:
    built = build(passes.run(import_source(str(DIGITS))), tmp_path / "b")
    assert read_manifest(built).live is None
