"""Records of choices read as they were written; costs rank as was measured; tuning overrides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.io.manifest_rows import Choice
from graphtool.ir.plan import Form, Plan, chosen_plan, plan
from graphtool.kernels.choice import alternatives
from graphtool.kernels.choice.alternatives import Alternative, Chosen
from graphtool.kernels.choice.choose import added_error, choose, cost, plans
from graphtool.kernels.choice.rules import Rules, rules_of
from graphtool.kernels.choice.sites import (
    Attention,
    Conv,
    Pool,
    Product,
    Recurrence,
    Site,
    site,
)
from graphtool.kernels.choice.tuning import load, merged, row, save
from graphtool.target import TABLE, Target
from graphtool.tune import measure

V4 = replace(TABLE["x86-64-v4"], threads=1)
WIDE = Conv(1, 56, 56, 64, 64, 3, 3)
SITES = [WIDE, Conv(2, 7, 7, 96, 96, 5, 5, 2, 2, groups=96), Conv(1, 8, 8, 4, 4, 1, 1,
         constant=False), Product(1, 8, 64, 32), Product(4, 8, 64, 32, False, True, False),
         Attention(8, 64, 100, 64, 64, 4, True), Attention(2, 1, 40, 16, 24, masked=True,
         fixed=False), Recurrence(20, 2, 512, 128, 2),
         Recurrence(9, 64, 48, 48, parts=3, fixed=False),
         Pool(1, 28, 28, 192, 3, 3)]
# site, threads, how the chosen kernel begins: as measured with AVX-512
EXPECTED = [
    (WIDE, 1, "winograd{tile=4"),
    (Conv(1, 7, 7, 512, 512, 3, 3), 1, "winograd{tile=2"),
    (Conv(1, 14, 14, 256, 256, 3, 3), 1, "winograd{tile=4"),
    (Conv(1, 14, 14, 256, 256, 3, 3), 2, "winograd{tile=4,group=16,shared=1"),
    (Conv(1, 28, 28, 128, 128, 3, 3), 2, "winograd{tile=4,group=16}"),
    (Conv(8, 4, 4, 512, 512, 3, 3), 2, "winograd{tile=2"),  # a third of the weights
    (Conv(1, 4, 4, 512, 512, 3, 3), 1, "conv_direct"),
    (Conv(1, 56, 56, 64, 64, 3, 3, groups=4), 1, "winograd{tile=4"),
    (Conv(1, 28, 28, 96, 96, 3, 3, groups=4), 1, "conv_direct"),  # of no whole panels
    (Conv(1, 28, 28, 128, 128, 3, 3, 2, 2), 1, "conv_direct"),
    (Conv(1, 56, 56, 8, 8, 3, 3), 1, "conv_direct"),
    (replace(WIDE, constant=False), 1, "winograd{tile=2"),
    (Conv(1, 14, 14, 384, 384, 3, 3, groups=384), 1, "depthwise{block=4,high=2"),
    (Conv(1, 56, 56, 96, 96, 3, 3, 2, 2, groups=96), 1, "depthwise{block=6,high=1"),
    (Conv(1, 14, 14, 384, 384, 7, 7, groups=384), 1, "depthwise{block=4,high=2"),
    (Conv(1, 28, 28, 144, 144, 5, 5, 2, 2, groups=144), 1, "depthwise{block=1,high=1"),
    (Product(1, 128, 768, 768), 1, "gemm{nv=2"),
    (Product(1, 1, 4096, 4096), 1, "gemm{nv=2,beside=4}"),
    (Product(1, 64, 16, 64), 1, "gemm{nv=1"),
    (Product(1, 784, 40, 240), 1, "gemm{nv=3"),  # 48 columns where two vectors would make 64
    (Product(1, 196, 80, 480), 1, "gemm{nv=1"),
    # a gradient of weights, of the rows that an open batch is taken to have
    (Product(1, 2560, 640, 16384, False, True), 1, "gemm_blocked{nv=2,split=1"),
    (Conv(1, 14, 14, 64, 48, 5, 5), 1, "winograd_line{tile=4,nv=3"),
    (Conv(1, 14, 14, 64, 48, 5, 5, 2, 2), 1, "conv_direct{nv=3"),
    (Conv(1, 1, 1000, 64, 64, 1, 15), 1, "winograd_line{tile=4"),
    # a tile of 4 would pass the edge
    (Conv(1, 24, 32, 128, 128, 3, 1, dh=4), 1, "winograd_line{tile=2"),
    (Conv(1, 28, 28, 32, 96, 3, 3, dh=2, dw=2), 1, "winograd_line{tile=4"),
    (Attention(12, 197, 197, 64, 64), 1, "attend{keys=0,nv=2,rows=14}"),
    (Attention(6, 1500, 1500, 64, 64), 2, "attend{keys=0,nv=2,rows=14}"),
    (Attention(1, 64, 60000, 64, 64), 1, "attend{keys=0"),  # scores stream as fast as sums
    (Attention(6, 197, 197, 48, 48), 1, "attend{keys=0,nv=1"),  # where two vectors leave one
    (Attention(3, 14, 300, 64, 64), 2, "attend{keys=0,nv=2,rows=7}"),  # else one has 2 of 3
    (Attention(8, 1, 300, 64, 64), 1, "attend{keys=0,nv=2,rows=1}"),
    (Pool(1, 55, 55, 64, 3, 3, 2, 2), 1, "pooled"),
    (Pool(1, 20, 20, 128, 5, 5), 1, "pooled"),
    (Pool(1, 112, 112, 64, 2, 2, 2, 2), 1, "windows"),  # they share nothing
    (Pool(1, 28, 28, 6, 3, 3), 1, "windows"),  # of no whole vector
]


@pytest.mark.parametrize("s", SITES, ids=str)
def test_sites_read_as_written(s: Site) -> None:
    assert site(str(s)) == s


@pytest.mark.parametrize("text", ["", "conv{n=1", "conv{n}", "lstm{n=1}", "conv{m=1}", "conv{}"])
def test_other_texts_are_no_sites(text: str) -> None:
    with pytest.raises(InputError, match="GT0631"):
        site(text)


@pytest.mark.parametrize(("s", "threads", "kernel"), EXPECTED, ids=str)
def test_costs_rank_as_measured(s: Site, threads: int, kernel: str) -> None:
    assert str(chosen_plan(choose(s, replace(V4, threads=threads), Rules()))).startswith(kernel)


@pytest.mark.parametrize(("s", "precision", "rounded"), [
    (Conv(1, 56, 56, 96, 96, 3, 3, 2, 2, groups=96), "fast", 1),  # its image passes the caches
    (Conv(1, 56, 56, 96, 96, 3, 3, 2, 2, groups=96), "default", 0),
    (Conv(1, 14, 14, 384, 384, 3, 3, groups=384), "fast", 0)], ids=str)
def test_large_images_are_rounded_in_fast(s: Conv, precision: str, rounded: int) -> None:
    target = replace(TABLE["sapphirerapids"], threads=1)
    made = choose(s, target, rules_of(precision))
    assert chosen_plan(made).get("rounded", 0) == rounded
    assert (added_error(made) > 0) == (rounded == 1)


@pytest.mark.parametrize("target", TABLE.values(), ids=TABLE)
@pytest.mark.parametrize("s", SITES, ids=str)
def test_every_candidate_has_a_cost(s: Site, target: Target) -> None:
    found = plans(s, target, Rules(kernels="auto"))
    most = 3e9 / target.mhz * target.soft
    assert found and all(0 < cost(s, c, target) < most for c in found)


def test_rules_exclude() -> None:
    assert chosen_plan(choose(WIDE, V4, Rules(winograd=2))).get("tile", 0) == 2
    assert chosen_plan(choose(WIDE, V4, Rules(winograd=0))).kind == "conv_direct"


def test_a_kernel_of_ones_own_is_asked_like_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of the table, and select builds what it makes where it should cost least."""
    def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
        return o.neg(o.matmul(o.neg(x), w, transpose_b=transpose))
    mine = Alternative(Product, Form("mine"), lambda s, target, rules: [Form("mine").plan()],
                       lambda s, p, target: 1e-3 if s.m < 100 else 1e3, make)
    monkeypatch.setitem(alternatives._ALTERNATIVES, mine, ("c",))
    assert str(chosen_plan(choose(Product(1, 8, 64, 64), V4, Rules()))) == "mine"
    assert choose(Product(1, 800, 64, 64), V4, Rules()).us["mine"] > 100
    for rows, ops in ((8, ["neg", "matmul", "neg"]), (800, ["gemm"])):
        module = measure.model(Product(1, rows, 64, 64))
        ready = passes.run(module, "select,fold,dce", supply={"target": V4})
        assert [n.op.name for n in ready.graph.nodes if n.op.name != "constant"] == ops


def test_what_was_measured_is_chosen(tmp_path: Path) -> None:
    times = {plan("conv_direct{nv=2,rows=1}"): 3.0, plan("winograd{tile=4,group=28}"): 5.0,
             plan("unknown{x=1}"): 1.0}
    save(merged([row(WIDE, V4, times)]), tmp_path / "t.jsonl")
    rules = Rules(tuning=load(tmp_path / "t.jsonl"))
    assert choose(WIDE, V4, rules) == Choice(
        str(WIDE), "tuned", {"conv_direct{nv=2,rows=1}": 3.0, "winograd{tile=4,group=28}": 5.0})
    assert choose(WIDE, replace(V4, l2=1 << 19), rules).by == "cost"
    assert choose(WIDE, replace(V4, threads=2), rules).by == "tuned"


def test_the_later_of_two_lines_counts(tmp_path: Path) -> None:
    one, other = (row(WIDE, V4, {Plan("conv_direct"): us}) for us in (1.0, 2.0))
    found = merged([one], [other])
    assert found.repeated == (str(WIDE),) and list(found.rows.values()) == [other]


@pytest.mark.parametrize("line", ["{", "{}", "<<<<<<< HEAD", '{"site": 1}'])
def test_lines_that_are_none(line: str, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(line + "\n")
    with pytest.raises(InputError, match="GT0632"):
        load(tmp_path / "t.jsonl")


def test_errors_are_those_of_the_kernels() -> None:
    """F(2,3) is about as exact as a direct sum, F(4,3) a few times worse, bfloat16 by thousands."""
    def of(s: Site, text: str) -> float:
        return added_error(Choice(str(s), "cost", {text: 1.0}))
    assert added_error(None) == of(WIDE, "conv_direct") == 0.0
    assert 1e-7 < of(WIDE, "winograd{tile=2,group=28}") < 1e-6
    assert 1e-6 < of(WIDE, "winograd{tile=4,group=28}") < 1e-5
    assert 1e-3 < of(Product(1, 8, 64, 64), "gemm_bf16{nv=2}") < 1e-2


def test_dot_products_of_bfloat16_where_winograd_does_not_win() -> None:
    fast, wide = rules_of("fast"), replace(V4, bf16=True)
    assert chosen_plan(choose(WIDE, wide, fast)).kind == "winograd"
    strided = Conv(1, 28, 28, 64, 128, 3, 3, 2, 2)
    taken = choose(strided, wide, fast)
    assert chosen_plan(taken).kind == "conv_bf16" and 0 < added_error(taken) < 1e-2
    assert chosen_plan(choose(strided, wide, rules_of())).kind == "conv_direct"
    assert added_error(choose(replace(strided, dtype=dtypes.bfloat16), wide, rules_of())) == 0.0
