"""The package for npm of a build for wasm32-relaxed: an engine with relaxed vectors gets the second
module; the bits of strict and of int8 depend on no engine, and are those of this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from benchmarks.browser import found
from graphtool import ops as o
from graphtool.transforms.quantising import Quantisation
from tests.package import pages
from tests.passes.pass_samples import module, values

SHAPE = (1, 3, 21, 19)
FLAG = "--experimental-wasm-relaxed-simd"  # of a Node that has them not yet by default


def net(x: Any) -> Any:
    """A convolution, filters of each channel alone with both strides, and a product."""
    y = o.relu(o.conv(x, values(x, 10, 3, 3, 3) * 0.3, strides=(2, 2), padding=((1, 1), (1, 1))))
    for stride, size in ((1, 3), (2, 5)):
        taps = values(x, 10, 1, size, size, seed=size) * 0.4
        y = o.relu(o.conv(y, taps, groups=10, strides=(stride, stride), padding=((2, 1), (1, 2))))
    return o.matmul(o.reshape(y, shape=(10, 30)), values(x, 30, 7) * 0.2)


RESULTS = """
export async function results(load) {
  const x0 = new Float32Array(3 * 21 * 19).map((_, i) => Math.sin(i * 0.37)), all = [];
  for (const relaxed of [true, false]) {
    const model = await load({}, { relaxed });
    all.push([...new Uint32Array(Object.values(await model.run({ x0 }))[0].data.buffer)]);
  }
  return JSON.stringify(all);
}
"""
NODE = """
const { load } = await import("./package/index.js");
const { results } = await import("./results.js");
console.log(await results(load));
"""
PAGE = """
(async () => {{
  const {{ load }} = await import("/package/{module}.js");
  return (await import("/results.js")).results(load);
}})()
"""


def bits(text: str) -> list[np.ndarray[Any, Any]]:
    return [np.array(row, np.uint32).view(np.float32) for row in json.loads(text)]


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("ziglang") and shutil.which("node")), reason="zig and node")
@pytest.mark.parametrize("form", ["strict", "int8", "default"])
def test_an_engine_gets_what_it_has(form: str, tmp_path: Path) -> None:
    graph, precision = module(net, f"f32{list(SHAPE)}"), form if form == "strict" else "default"
    x = np.sin(np.arange(np.prod(SHAPE)) * 0.37).astype(np.float32).reshape(SHAPE)
    if form == "int8":
        graph = graphtool.quantise(graph, Quantisation(("static",)), {"x0": x})
    built = graphtool.build(graph, tmp_path / "b", name="small", target="wasm32-relaxed",
                            precision=precision)
    site = pages.site(tmp_path, built, RESULTS)
    assert (site / "package" / "small.relaxed.wasm").exists()
    here = graphtool.load(graphtool.build(graph, tmp_path / "c", target="x86-64",
                                          precision=precision))
    want = next(iter(here(x0=x).values())).ravel()
    options = subprocess.run(["node", "--v8-options"], capture_output=True, text=True).stdout
    said = [pages.in_node(site, NODE, *([FLAG] if FLAG in options else []))]
    if found():
        said += pages.in_pages(site, [PAGE.format(module=m) for m in ("index", "worker")])
    for relaxed, plain in map(bits, said):
        np.testing.assert_allclose(relaxed, want, rtol=1e-4, atol=1e-5)
        if form != "default":
            np.testing.assert_array_equal(plain.view(np.uint32), want.view(np.uint32))
            np.testing.assert_array_equal(relaxed.view(np.uint32), want.view(np.uint32))
        else:
            assert np.any(relaxed != plain), "the second module was not taken"
