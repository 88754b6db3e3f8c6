"""A second language: the text of kernels in CUDA, and languages of plug-ins.

What it shows is that nothing in `emit` knows C's threads: loops are shared by a grid of workers,
sums meet in a team, and steps are launches. tests/native/test_cuda.py runs such kernels.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from graphtool import ops as o
from graphtool import passes, plugins
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.emit.language import LANGUAGES, named
from graphtool.errors import InputError, UsageError
from graphtool.ir.graph import Module
from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import Template
from graphtool.loops.walk import statements
from graphtool.lower import lower
from graphtool.target import named as target
from tests.native.cuda.models import MODELS, module
from tests.passes.pass_samples import module as traced

USED = {"network": {"gemm"}, "convolution": {"conv_direct"}, "dense": {"gemm"}}
PLUGIN = """
from dataclasses import replace
from graphtool.emit.cuda import CUDA
from graphtool.extend import Target, add_language, add_target
__version__ = "1.0"
add_language(replace(CUDA, name="metal_text", title="Metal", ending=".metal", device=None))
add_target(Target("metal", "a GPU of Apple", 1, 4, 4, language="metal_text"))
"""


def optimised(name: str, march: str = "sm_90") -> Module:
    return passes.run(module(name), None, supply={"march": march})


def text_of(name: str) -> str:
    program = lower(optimised(name), target("sm_90", threads=4))
    return "".join(t for f, t in emit(program).items() if f.endswith((".cu", "model.c")))


def test_rows_belong_to_teams_and_their_elements_to_workers() -> None:
    text = text_of("softmax")
    assert "= (int32_t)blockIdx.x * GT_WARPS + threadIdx.x / GT_WARP; i0 < d0; " in text
    assert "for (int32_t r0 = (threadIdx.x % GT_WARP) * 4; r0 < 300; r0 += GT_WARP * 4) {" in text
    assert "acc0 = gt_warp_max_f32(acc0);" in text
    assert "GT_LAUNCH(0, 1, model_k0, (d0 + 3) / 4, " in text
    text = text_of("network")
    assert "for (int32_t i0 = (int32_t)blockIdx.x" in text


def test_long_rows_belong_to_blocks() -> None:
    program = lower(passes.run(traced(lambda x: o.softmax(x, axis=1), "f32[8,3000]"), None,
                               supply={"march": "sm_90"}), target("sm_90", threads=4))
    text = "".join(emit(program).values())
    assert "for (int32_t i0 = blockIdx.x; i0 < 8; i0 += gridDim.x) {" in text
    assert "acc0 = gt_team_max_f32(acc0);" in text and "GT_LAUNCH(0, 1, model_k0, 8, " in text


@pytest.mark.parametrize("name", ["elementwise", "pool"])
def test_elements_without_rows_are_shared_by_all_workers(name: str) -> None:
    text = text_of(name)
    assert re.search(r"= \(?\(int32_t\)blockIdx.x \* blockDim.x \+ threadIdx.x\b", text)
    assert re.search(r"GT_LAUNCH\(0, \d, model_k0, \(.+ \+ (127|511)\) / (128|512), ", text)
    assert not re.search(r"\bt\b|gt_barrier|GT_SIMD|gt_worker|gt_choose", text)


def test_indices_of_a_shared_loop_have_names() -> None:
    assert re.search(r"const int32_t i\d = \(\(i\d / \d+\) % 23\);", text_of("pool"))


def test_no_kernel_is_used_that_has_no_text() -> None:
    for name in MODELS:
        program = lower(optimised(name), target("sm_90", threads=4))
        used = {s.kernel for k in program.kernels for s in statements(k.body)
                if isinstance(s, Template)}
        assert used == USED.get(name, set())
        assert all("cuda" in CONTRACTS[kernel].languages for kernel in used)
    in_c = lower(optimised("network", "x86-64-v3"), target("x86-64-v3", threads=4))
    assert [s for k in in_c.kernels for s in statements(k.body) if isinstance(s, Template)]


def test_a_program_for_another_language_is_refused() -> None:
    p = lower(optimised("network", "x86-64-v3"), target("x86-64-v3", threads=4))
    with pytest.raises(InputError, match="has no text in cuda") as told:
        emit(replace(p, meta={**p.meta, "language": "cuda"}))
    assert told.value.code == "GT0572"


def test_a_language_of_a_plug_in(tmp_path: Path) -> None:
    """Its text is emitted; nothing here compiles it."""
    (tmp_path / "metal.py").write_text(PLUGIN)
    plugins.load_plugin(tmp_path / "metal.py")
    try:
        m = optimised("softmax", "metal")
        files = emit(lower(m, target("metal", threads=4)))
        assert "gt_warp_max_f32" in files["model_kernels0.metal"]
        with pytest.raises(UsageError, match="kernels in Metal are not compiled here") as told:
            build(m, tmp_path / "b", target="metal")
        assert told.value.code == "GT2106"
    finally:
        plugins.unload("metal")
    assert "metal_text" not in LANGUAGES


def test_an_unknown_language() -> None:
    with pytest.raises(UsageError, match="unknown language 'cude'") as told:
        named("cude")
    assert told.value.code == "GT2105" and "did you mean 'cuda'" in (told.value.hint or "")
