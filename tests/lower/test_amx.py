"""Products and convolutions by a matrix unit, compiled: its own tiles where this machine has them,
and the vectors that stand in for them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.io.manifest import read_manifest
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.plan import chosen_plan
from graphtool.ir.trace import trace
from graphtool.kernels import headers
from graphtool.kernels.choice.blocks import GATHERED
from graphtool.kernels.choice.choose import choose
from graphtool.kernels.choice.rules import rules_of
from graphtool.kernels.choice.sites import Attention, Conv, Product
from graphtool.kernels.gemm_amx_blocked import GEMM_AMX_BLOCKED
from graphtool.machines import tiles_allowed
from graphtool.target import TABLE, Target, named, on_machine, recognised

Array = np.ndarray[Any, Any]
COMPUTE = Path(headers.__file__).parent / "c/compute"
U8, BF16, F16 = dtypes.uint8, dtypes.bfloat16, dtypes.float16
KINDS = [U8, BF16, F16]
# costs are those of one machine, whichever runs the test
TARGETS = {name: replace(on_machine(named(march), "sapphire-rapids"), amx=True, amx_fp16=True)
           for name, march in (("tiles", "native"), ("vectors", "x86-64-v3"))}
# rows, columns, depth
PRODUCTS = [(1, 1, 1), (2, 17, 3), (15, 16, 64), (16, 33, 65), (17, 32, 31), (31, 48, 128),
            (33, 70, 100), (49, 15, 130), (100, 64, 256)]
# the same of products that copy blocks of the left operand, and the depth that they take at a time
COPIED = [(1, 1, 1, 32), (16, 33, 65, 32), (17, 32, 31, 512), (33, 70, 100, 64), (49, 15, 130, 32),
          (300, 64, 256, 512), (45, 520, 600, 256), (530, 96, 1100, 512)]
# height, width, channels, filters, kernel, strides, dilation
IMAGES = [(5, 5, 3, 5, (3, 3), (1, 1), (1, 1)), (9, 40, 16, 33, (3, 3), (1, 1), (1, 1)),
          (7, 21, 64, 32, (1, 1), (2, 2), (1, 1)), (8, 9, 70, 20, (2, 3), (2, 1), (1, 2)),
          (16, 17, 8, 64, (1, 5), (1, 2), (1, 1)), (3, 70, 32, 40, (3, 1), (1, 1), (1, 1)),
          # rows so short that all of an image are taken as one
          (9, 9, 64, 40, (3, 3), (1, 1), (1, 1)), (9, 12, 20, 33, (3, 3), (2, 2), (1, 1)),
          (12, 6, 32, 64, (2, 1), (1, 1), (2, 1))]


def numbers(shape: tuple[int, ...], kind: Any) -> Array:
    rng = np.random.default_rng(sum(shape))
    if np.issubdtype(kind, np.integer):
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def weights(kind: dtypes.DType, shape: tuple[int, ...]) -> Array:
    return numbers(shape, np.int8 if kind is U8 else kind.numpy)


def agrees(function: Any, x: Array, target: str, folder: Path) -> None:
    """The compiled function gives what the evaluator gives, on one thread and on two."""
    graph = trace(function, [TensorType(dtypes.of_numpy(x.dtype), x.shape)], ["x"])
    module = passes.run(Module(graph, ("y",)), "fold,fuse", supply={"target": TARGETS[target]})
    assert [n for n in module.graph.nodes if "_amx" in n.op.name]
    (want,) = interp.run(Module(graph, ("y",)), {"x": x}).values()
    built = build(module, folder / "b", target=replace(TARGETS[target], threads=2))
    for threads in (1, 2):
        (got,) = graphtool.load(built, threads=threads)(x=x).values()
        if x.dtype == np.uint8:
            np.testing.assert_array_equal(got, want)
        else:
            scale = np.abs(want).max()
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * scale)


@pytest.mark.part(12)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("m", "n", "k"), PRODUCTS)
def test_products(m: int, n: int, k: int, kind: dtypes.DType, target: str, tmp_path: Path) -> None:
    w, nr = weights(kind, (k, n)), TARGETS[target].nr

    def function(x: Any) -> Any:
        y = o.gemm_amx(x, o.pack_blocks(x.builder.constant(w), nr=nr), n=n)
        return o.max(y, 0 if kind is U8 else 0.0)
    agrees(function, numbers((m, k), kind.numpy), target, tmp_path)


@pytest.mark.part(12)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "deep", "kind"), [
    *((*case, BF16) for case in COPIED), *((*case, F16) for case in COPIED[:3])], ids=str)
def test_products_of_copied_blocks(m: int, n: int, k: int, deep: int, kind: dtypes.DType,
                                   turned: bool, split: int, target: str, tmp_path: Path) -> None:
    w, nr = weights(kind, (2, k, n)), TARGETS[target].nr
    plan = GEMM_AMX_BLOCKED.plan(split=split, deep=deep)

    def function(x: Any) -> Any:
        x = o.transpose(x, perm=(0, 2, 1)) if turned else x
        packed = o.pack_blocks(x.builder.constant(w), nr=nr)
        return o.max(o.gemm_amx_blocked(x, packed, n=n, plan=plan), -1.0)
    agrees(function, numbers((2, k, m) if turned else (2, m, k), kind.numpy), target, tmp_path)


@pytest.mark.part(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_batch_that_is_packed_when_it_runs(kind: dtypes.DType, target: str,
                                             tmp_path: Path) -> None:
    w, nr = weights(kind, (3, 21, 40)), TARGETS[target].nr

    def function(x: Any) -> Any:
        moved = o.add(x.builder.constant(w), o.cast(o.slice(
            x, start=(0, 0, 0), limit=(3, 1, 1), strides=(1, 1, 1)), dtype=dtypes.of_numpy(
                w.dtype)))
        packed = o.pack_blocks(moved, nr=nr, transpose=True)
        return o.gemm_amx(x, packed, n=21)
    agrees(function, numbers((3, 18, 40), kind.numpy), target, tmp_path)


@pytest.mark.part(12)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("gathered", [False, True])
@pytest.mark.parametrize(("image", "kind"), [
    *((image, kind) for image in IMAGES for kind in (U8, BF16)),
    *((image, F16) for image in IMAGES[:3])], ids=str)
def test_convolutions(image: Any, gathered: bool, kind: dtypes.DType, target: str,
                      tmp_path: Path) -> None:
    h, wide, c, m, window, strides, dilation = image
    if gathered and c * np.prod(window) * kind.bytes > GATHERED:
        pytest.skip("more than is copied together")
    w, nr = weights(kind, (m, c, *window)), TARGETS[target].nr

    def function(x: Any) -> Any:
        packed = o.pack_conv_blocks(x.builder.constant(w), nr=nr, gathered=gathered)
        return o.conv_amx(x, packed, channels=m, window=window, strides=strides,
                          dilation=dilation, gathered=gathered)
    agrees(function, numbers((2, h, wide, c), kind.numpy), target, tmp_path)


# tdpfp16ps as its manual describes it, in plain C: few CPUs have it
IN_STEPS = r"""
GT_INLINE void gt_dot_f16_in_steps(char *sum, const char *a, const char *b)
{
    for (int m = 0; m < 16; m++)
        for (int k = 0; k < 16; k++)
            for (int n = 0; n < 16; n++) {
                float s;
                uint16_t x[2], y[2];
                memcpy(&s, sum + 64 * m + 4 * n, 4);
                memcpy(x, a + 64 * m + 4 * k, 4);
                memcpy(y, b + 64 * k + 4 * n, 4);
                s += gt_f16_to_f32(x[0]) * gt_f16_to_f32(y[0]);
                s += gt_f16_to_f32(x[1]) * gt_f16_to_f32(y[1]);
                memcpy(sum + 64 * m + 4 * n, &s, 4);
            }
}
#define GT_STORED(t, to) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"(64L) : "memory")
#define GT_TILE_DOT_F16(sum, a, b)                                       \
    do {                                                                 \
        char s[1024] = {0}, x[1024] = {0}, y[1024] = {0};                \
        GT_STORED(sum, s);                                               \
        GT_STORED(a, x);                                                 \
        GT_STORED(b, y);                                                 \
        gt_dot_f16_in_steps(s, x, y);                                    \
        GT_TILE_LOAD(sum, s, 64);                                        \
    } while (0)
"""
UNIT = re.compile(r"#define GT_TILE_DOT_F16\(.*?\n(?! )", re.DOTALL)


def has_float16_tiles(folder: Path) -> bool:
    """Whether this CPU has the instruction; virtual machines can hide that."""
    (folder / "try.c").write_text(r"""
#define GT_LANES 16
#include "amx.h"
int main(void)
{
    static char zeros[1024] GT_ALIGNED;
    if (!gt_amx_allowed()) return 1;
    gt_amx_shape(16);
    GT_TILE_ZERO(0);
    GT_TILE_LOAD(4, zeros, 64);
    GT_TILE_LOAD(6, zeros, 64);
    GT_TILE_DOT_F16(0, 4, 6);
    return 0;
}
""")
    subprocess.run(["cc", "-march=sapphirerapids", f"-I{COMPUTE}", "try.c",
                    "-o", "try"], cwd=folder, check=True)
    return subprocess.run([folder / "try"]).returncode == 0


@pytest.mark.skipif(not tiles_allowed(), reason="needs tiles")
@pytest.mark.parametrize("by", ["steps", "instruction"])
def test_tiles_of_float16(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads, stores and loops of tiles, also around code that stands in for the instruction."""
    plain = headers.text
    if by == "steps":
        monkeypatch.setattr(headers, "text", lambda name: UNIT.sub(
            lambda _: IN_STEPS, plain(name) or "", count=1) if name == "amx.h" else plain(name))
    elif not has_float16_tiles(tmp_path):
        pytest.skip("this CPU does not have the instruction")
    own = replace(TARGETS["tiles"], more=(*TARGETS["tiles"].more, "-DGT_AMX_FP16"))
    monkeypatch.setitem(TARGETS, "tiles", own)
    for i, (m, n, k) in enumerate(PRODUCTS[::2]):
        test_products(m, n, k, F16, "tiles", tmp_path / f"products{i}")
        used = (tmp_path / f"products{i}/b/amx.h").read_text()
        assert ("gt_dot_f16_in_steps" in used) == (by == "steps")
    for i, (m, n, k, deep) in enumerate(COPIED[:4]):
        test_products_of_copied_blocks(m, n, k, deep, F16, bool(i % 2), 1, "tiles",
                                       tmp_path / f"copied{i}")
    for i, image in enumerate(IMAGES[:4]):
        test_convolutions(image, bool(i % 2) and image[2] < 64, F16, "tiles", tmp_path / f"conv{i}")


def test_bytes_of_the_instruction_of_float16(tmp_path: Path) -> None:
    """They are what an assembler that knows tdpfp16ps makes of it."""
    uses = [(0, 4, 6), (1, 4, 7), (2, 5, 6), (3, 5, 7)]
    (tmp_path / "names.s").write_text("".join(
        f"tdpfp16ps %tmm{b}, %tmm{a}, %tmm{s}\n" for s, a, b in uses))
    known = subprocess.run(["as", "-o", "names.o", "names.s"], cwd=tmp_path, capture_output=True)
    if known.returncode:
        pytest.skip("the assembler does not know tdpfp16ps")
    found = UNIT.search(headers.text("amx.h") or "")
    assert found is not None
    (tmp_path / "bytes.c").write_text(found[0] + "void f(void)\n{\n" + "".join(
        f"    GT_TILE_DOT_F16({s}, {a}, {b});\n" for s, a, b in uses) + "}\n")
    subprocess.run(["cc", "-O1", "-c", "bytes.c"], cwd=tmp_path, check=True)
    texts = [subprocess.run(["objdump", "-d", name], cwd=tmp_path, capture_output=True,
                            text=True, check=True).stdout for name in ("names.o", "bytes.o")]
    listed = [re.findall(r"tdpfp16ps\s+(\S+)", text) for text in texts]
    assert len(listed[0]) == 4 and listed[0] == listed[1]


@pytest.mark.part(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "filters", "strides", "padding", "columns"), [
    ((2, 3, 38, 45), (33, 3, 7, 7), (2, 2), ((3, 3), (3, 3)), (4, 8)),
    ((1, 3, 32, 48), (40, 3, 16, 16), (16, 16), ((0, 0), (0, 0)), (4, 16)),
    ((1, 12, 9, 21), (20, 12, 3, 3), (1, 1), ((1, 0), (2, 1)), (16, 4))])
def test_pixels_of_few_channels_are_filled_up(shape: Any, filters: Any, strides: Any, padding: Any,
                                              columns: Any, target: str, tmp_path: Path) -> None:
    """A row of the window then fills whole tiles; where a NaN must stay in its window, it does
    not."""
    w = weights(BF16, filters)

    def function(x: Any) -> Any:
        return o.conv(x, x.builder.constant(w), strides=strides, padding=padding)
    module = Module(trace(function, [TensorType(BF16, shape)], ["x"]), ("y",))
    x = numbers(shape, BF16.numpy)
    for rules, filled in ((rules_of(), 1), (rules_of(assume="nothing"), 0)):
        own = TARGETS[target]
        done = passes.run(module, None, supply={"target": own, "rules": rules})
        (node,) = [n for n in done.graph.nodes if n.op.name.startswith("conv_")]
        assert node.attrs["plan"].get("filled", 0) == filled
        if filled:
            assert (node.inputs[0].type.shape[3], node.attrs["window"][1]) == columns
        else:
            x[0, 0, 5, 17] = np.nan
        built = build(done, tmp_path / f"b{filled}", target=own)
        assert read_manifest(built).assumes == ("finite" if filled else "nothing")
        (got,) = graphtool.load(built)(x=x).values()
        (want,) = interp.run(module, {"x": x}).values()
        assert np.isnan(got).sum() == np.isnan(want).sum()
        np.testing.assert_allclose(np.asarray(got, np.float32), np.asarray(want, np.float32),
                                   rtol=0.02, atol=0.02 * float(np.nanmax(np.abs(want))))


@pytest.mark.part(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("queries", "keys", "depth", "values", "heads", "mask", "how"), [
    (37, 37, 64, 64, (3, 3), None, {}),
    (70, 33, 24, 40, (4, 2), None, {"causal": True}),
    (33, 90, 40, 16, (2, 2), (33, 90), {"softcap": 3.0}),
    (33, 90, 40, 16, (2, 1), (1, 90), {"causal": True}),
    (40, 47, 33, 7, (2, 2), (2, 40, 1), {"scale": -0.25}),
    (5, 1700, 8, 50, (1, 1), (5, 1700), {}),
    (1100, 1100, 9, 3, (1, 1), None, {"causal": True})])
def test_attention(queries: int, keys: int, depth: int, values: int, heads: tuple[int, int],
                   mask: tuple[int, ...] | None, how: dict[str, Any], target: str,
                   tmp_path: Path) -> None:
    """Blocks that are not full, shared keys, masks of queries and of all, and a row that sees
    nothing; more keys than are taken at a time."""
    shapes = [(heads[0], queries, depth), (heads[1], keys, depth), (heads[1], keys, values)]
    x = {name: numbers(s, BF16.numpy) for name, s in zip("qkv", shapes, strict=True)}
    if mask:
        x["m"] = np.where(numbers(mask, np.float32) > 1, -np.inf, numbers(mask, np.float32))
        if mask[-2] > 1:
            x["m"][..., 3, :] = -np.inf
    types = [TensorType(dtypes.of_numpy(a.dtype), a.shape) for a in x.values()]
    graph = trace(lambda *xs: o.attend_amx(*xs, **{"scale": 0.5, **how}), types, list(x))
    module = Module(graph, ("y",))
    own = replace(TARGETS[target], threads=2)
    done = passes.run(module, "fold,fuse", supply={"target": own})
    (want,) = interp.run(module, x).values()
    built = build(done, tmp_path / "b", target=own)
    for threads in (1, 2):
        (got,) = graphtool.load(built, threads=threads)(**x).values()
        np.testing.assert_allclose(got, want, rtol=3e-3, atol=3e-3 * float(np.abs(want).max()))
        if mask and mask[-2] > 1:
            assert not got[:, 3].any()


def test_a_gradient_of_weights_in_bfloat16_is_for_the_unit(tmp_path: Path) -> None:
    """Its left operand is transposed in memory."""
    target = replace(named("x86-64-v4"), amx=True)
    for dtype, kind in ((BF16, "gemm_amx_blocked"), (dtypes.float32, "gemm_parts_moving")):
        made = choose(Product(1, 1024, 384, 1024, False, True, dtype=dtype), target, rules_of())
        assert chosen_plan(made).kind == kind
    made = choose(Product(1, 1024, 384, 1024, False, dtype=dtypes.bfloat16), target, rules_of())
    assert chosen_plan(made).kind == "gemm_amx"


def test_what_is_beside_a_run_does_not_matter(tmp_path: Path) -> None:
    """A NaN in the next pixel is multiplied with no zero of the padding."""
    w = weights(BF16, (8, 5, 1, 1))
    x = numbers((1, 3, 20, 5), BF16.numpy)
    x[0, 1, 7] = np.nan

    def function(x: Any) -> Any:
        packed = o.pack_conv_blocks(x.builder.constant(w), nr=TARGETS["tiles"].nr)
        return o.conv_amx(x, packed, channels=8, window=(1, 1), strides=(1, 1))
    graph = trace(function, [TensorType(BF16, x.shape)], ["x"])
    module = passes.run(Module(graph, ("y",)), "fold,fuse", supply={"target": TARGETS["tiles"]})
    built = build(module, tmp_path / "b", target=TARGETS["tiles"])
    (got,) = graphtool.load(built)(x=x).values()
    assert np.isnan(got[0, 1, 7]).all() and np.isnan(got).sum() == 8


@pytest.mark.parametrize(("site", "precision", "kind"), [
    (Product(1, 128, 768, 768, dtype=dtypes.uint8), "default", "gemm_amx"),
    (Product(1, 128, 768, 768, dtype=dtypes.uint8), "strict", "gemm_amx"),
    (Product(1, 128, 768, 768), "fast", "gemm_amx"),
    (Product(1, 8, 768, 768), "default", "gemm"),
    (Product(1, 128, 768, 768, dtype=dtypes.bfloat16), "default", "gemm_amx"),
    (Product(1, 128, 768, 768, dtype=dtypes.int16), "default", "gemm_int"),
    (Conv(1, 28, 28, 128, 128, 3, 3, dtype=dtypes.uint8), "default", "conv_amx"),
    (Conv(1, 28, 28, 128, 128, 3, 3), "fast", "conv_amx"),
    (Attention(12, 128, 128, 64, 64), "fast", "attend_amx"),
    (Attention(12, 128, 128, 64, 64, keys=dtypes.bfloat16), "fast", "attend_amx"),
    (Attention(12, 1, 128, 64, 64), "fast", "attend"),
    (Attention(12, 128, 4096, 64, 64, fixed=False), "fast", "attend"),
    (Attention(12, 128, 128, 64, 64, keys=dtypes.int8), "fast", "attend"),
    (Conv(1, 28, 28, 128, 128, 3, 3, groups=4, dtype=dtypes.uint8), "default", "conv_int")])
def test_what_is_chosen(site: Any, precision: str, kind: str) -> None:
    def chosen(target: Target) -> str:
        return chosen_plan(choose(site, target, rules_of(precision))).kind
    assert chosen(named("amx", 1)) == kind
    assert not chosen(named("x86-64-v4", 1)).endswith("amx")


@pytest.mark.parametrize(("site", "kind"), [
    (Product(1, 128, 768, 768, dtype=dtypes.float16), "gemm"),
    (Product(1, 1024, 384, 1024, False, True, dtype=dtypes.float16), "gemm"),
    (Conv(1, 28, 28, 128, 128, 3, 3, dtype=dtypes.float16), "conv")])
def test_float16_is_for_a_unit_that_has_it(site: Any, kind: str) -> None:
    """Products of float16 are exact in float32, so that no rule has to allow them."""
    def chosen(target: str, precision: str) -> str:
        return chosen_plan(choose(site, named(target, 1), rules_of(precision))).kind
    for precision in ("default", "fast"):
        assert chosen("graniterapids", precision).startswith(f"{kind}_amx")
        assert "amx" not in chosen("sapphirerapids", precision)


def test_the_row_is_recognised_by_its_features() -> None:
    row, newer = TABLE["sapphirerapids"], TABLE["graniterapids"]
    assert recognised("x86_64", row.needs) is row
    assert recognised("x86_64", newer.needs) is newer
    assert recognised("x86_64", row.needs - {"amx_tile"}) is TABLE["x86-64-v4"]
