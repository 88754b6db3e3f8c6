"""Tables quantised by blocks to less than a byte: only the rows that are drawn are dequantised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.dtypes import TABLE
from graphtool.native import runtime
from tests.importers.onnx.build import checked, model, node
from tests.lower.compiling import faults, optimised

ROWS, WIDE, BLOCK = 301, 96, 32
TYPES = {d.short: d.numpy for d in TABLE if d.onnx and d.is_packed and d.is_integer}
BEFORE = [node("t = DequantizeLinear(q, s, z)", axis=1, block_size=BLOCK), "y = Gather(t, ids)"]
AFTER = [node("y = GatherBlockQuantized(q, ids, s, z)", block_size=BLOCK,
              domain="com.microsoft")]


def table(kind: str, wide: int) -> dict[str, np.ndarray]:
    rng, bits = np.random.default_rng(wide), int(kind[1])
    blocks = -(-wide // BLOCK)
    whole = [rng.integers(0, 1 << bits, (ROWS, n), np.uint8).view(TYPES[kind])
             for n in (wide, blocks)]
    return {"q": whole[0], "z": whole[1], "s": rng.random((ROWS, blocks)).astype(np.float32)}


@pytest.mark.parametrize("wide", [WIDE, WIDE - 5], ids=["whole blocks", "the last one cut"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("order", ["before", "after"])
def test_an_embedding(order: str, kind: str, wide: int, tmp_path: Path) -> None:
    weights = table(kind, wide)
    proto = model(BEFORE if order == "before" else AFTER, ["ids i64 B 2"], ["y f32 B 2 W"],
                  weights, 25)
    m = checked(proto)
    ids = np.array([[0, 300], [-1, 7], [299, 300]])
    spread = [np.repeat(weights[k].astype(np.float32), BLOCK, 1)[:, :wide] for k in "zs"]
    want = {"y": ((weights["q"].astype(np.float32) - spread[0]) * spread[1])[ids]}
    assert faults(interp.run(m, {"ids": ids}), want) == []
    path = build(optimised(m), tmp_path / "b", jobs=2)
    assert faults(runtime.load(path).run({"ids": ids}), want) == []
    held = weights["q"].size * int(kind[1]) // 8
    spare = 4 * weights["z"].size + 4 * weights["s"].size + 2048
    assert held <= (path / "model.safetensors").stat().st_size < held + spare
    if wide == WIDE:  # no table of floats is made on the way
        assert runtime.read_manifest(path).arena == 0
