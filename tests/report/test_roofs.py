"""What bounds a kernel: the instructions that it is for, and its own number of products."""

from __future__ import annotations

import pytest

import graphtool.kernels  # noqa: F401  (fills the table of ops)
from graphtool.io.manifest_rows import Choice
from graphtool.ir.op import OPS
from graphtool.report.machine import KINDS, Bandwidth, Peaks, roof_of

TOP = Peaks(100.0, [Bandwidth(1 << 14, 50.0)], {"bf16": 200.0})


def chosen(plan: str) -> Choice:
    return Choice("conv{}", "cost", {plan: 1.0, "conv_direct{nv=1,rows=1}": 2.0})


@pytest.mark.parametrize(("plan", "kind", "share"), [
    ("conv_direct{nv=2,rows=1}", "f32", 1), ("winograd{tile=4,group=28}", "f32", 1 / 4),
    ("winograd{tile=2,group=28}", "f32", 16 / 36), ("winograd_line{tile=4,nv=1}", "f32", 1 / 2),
    ("winograd_int{tile=4}", "int8", 1 / 4), ("gemm_bf16{nv=2}", "bf16", 1),
    ("conv_amx", "tile_bf16", 1), ("gemm_amx_blocked{split=1}", "tile_bf16", 1),
    ("gemm_parts{parts=3}", "tile_bf16", 6), ("gemm_parts{parts=2}", "tile_bf16", 3),
    ("conv_parts{parts=3}", "tile_bf16", 6),
    ("gemm_int{nv=1}", "int8", 1), ("linear_bf16", "tile_bf16", 1), ("linear_q8", "int8", 1),
    ("linear_nbits", "f32", 1), ("depthwise{block=1,rounded=1}", "bf16", 1)])
def test_of_each_kind_of_kernel(plan: str, kind: str, share: float) -> None:
    found, part = roof_of(chosen(plan))
    assert found == kind and part == pytest.approx(share)


def test_a_matrix_unit_has_two_rates() -> None:
    plans = {"gemm_amx": 1.0}
    assert roof_of(Choice("product{m=4,dtype=u8}", "cost", plans))[0] == "tile_int8"
    assert roof_of(Choice("product{m=4,dtype=bf16}", "cost", plans))[0] == "tile_bf16"


def test_every_kernel_has_a_rate_that_is_measured() -> None:
    forms = [form for op in OPS.values() for form in op.plans]
    assert len(forms) > 15
    assert {roof_of(chosen(form.kind))[0] for form in forms} <= set(KINDS)
    assert roof_of(None) == ("f32", 1.0)


def test_a_kernel_at_its_peak_is_at_its_roof() -> None:
    """1e6 nominal flops by Winograd are 250,000; of bfloat16 a machine may do twice as many."""
    assert TOP.least_us(250_000, 8) == pytest.approx(2.5)
    assert TOP.least_us(1e6, 8, "bf16") == pytest.approx(5) and TOP.least_us(1e6, 8, "int8") == 10
