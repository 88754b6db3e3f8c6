"""An error about an index out of range names the index that the user gave, also a negative one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.errors import InputError
from graphtool.native import runtime
from tests.importers.onnx.build import checked, model, node
from tests.lower.compiling import optimised

SIZE = 7
CALLS = {  # a call on x f32[7,7] and indices i64 of this shape
    "Gather": (node("y = Gather(x, i)"), (2,)),
    "Gather of columns": (node("y = Gather(x, i)", axis=1), (2,)),
    "GatherElements": (node("y = GatherElements(x, i)", axis=1), (7, 2)),
    "GatherElements of rows": (node("y = GatherElements(x, i)"), (2, 7)),
    "GatherND": (node("y = GatherND(x, i)"), (3, 2)),
    "ScatterElements": (node("y = ScatterElements(x, i, i_f)", axis=1), (7, 2)),
    "ScatterND": (node("y = ScatterND(x, i, i_f)"), (3, 1)),
}


def made(name: str, open_: bool) -> tuple[Any, dict[str, Any]]:
    call, shape = CALLS[name]
    rows = "N" if open_ else SIZE
    inputs = [f"x f32 {rows} {rows}", f"i i64 {' '.join(map(str, shape))}"]
    feed = {"x": np.ones((SIZE, SIZE), np.float32), "i": np.zeros(shape, np.int64)}
    if "i_f" in call.input:
        given = (3, SIZE) if name == "ScatterND" else shape
        feed["i_f"] = np.ones(given, np.float32)
        last = rows if name == "ScatterND" else given[1]
        inputs.append(f"i_f f32 {given[0]} {last}")
    return model([call], inputs, ["y f32 ?" if name == "GatherND" else "y f32 ? ?"]), feed


@pytest.mark.parametrize("open_", [False, True], ids=["fixed", "open"])
@pytest.mark.parametrize("name", CALLS)
def test_the_index_is_named(name: str, open_: bool, tmp_path: Path) -> None:
    if open_ and CALLS[name][1][0] == SIZE:
        pytest.skip("the shape of these indices needs a fixed size")
    proto, feed = made(name, open_)
    module = checked(proto)
    small = optimised(module)
    native = runtime.load(build(small, tmp_path / "b", jobs=2))
    for bad in (-SIZE - 5, SIZE + 5, -2**63):
        feed["i"].flat[0] = bad
        for run in (lambda: interp.run(module, feed), lambda: interp.run(small, feed)):
            with pytest.raises(InputError, match=rf"GT0501.*index {bad} is out of range") as told:
                run()
        with pytest.raises(InputError, match="GT0501") as caught:
            native.run(feed)
        assert caught.value.message.partition("for axis")[2].split(",")[0].replace(
            "size N", f"size {SIZE}") == told.value.message.partition("for axis")[2]
