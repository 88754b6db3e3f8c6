"""The package for npm of a model with threads: equal bits for any number of them, in Node and in a
page, and one thread where memory cannot be shared."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import graphtool
from benchmarks.browser import found
from graphtool import ops as o
from graphtool.package.wasm import shared_pages
from tests.package import pages
from tests.passes.pass_samples import module, values

HEAD = b"\0asm\1\0\0\0"
MEMORY = b"\x03env\x06memory\x02"  # an import of a memory, without its limits


@pytest.mark.parametrize(("imports", "pages"), [
    (b"\1" + MEMORY + b"\3\x81\2\xff\xff\3", 257), (b"\1" + MEMORY + b"\1\2\3", None),
    (b"\3\1a\1b\0\5\1a\1c\3\x7f\0" + MEMORY + b"\3\5\x10", 5), (b"\1\1a\1b\1\x70\0\1", None)])
def test_the_memory_that_a_module_shares(imports: bytes, pages: int | None) -> None:
    section = b"\2" + bytes([len(imports)]) + imports
    assert shared_pages(HEAD + b"\1\1\0" + section + b"\3\1\0") == pages
    assert shared_pages(HEAD + b"\1\1\0") is None


def net(x: Any) -> Any:
    """Work that threads divide, with memory for each and with phases."""
    y = o.relu(o.conv(x, values(x, 32, 16, 3, 3) * 0.1, padding=((1, 1), (1, 1))))
    y = o.relu(o.conv(y, values(x, 64, 32, 3, 3, seed=1) * 0.1, padding=((1, 1), (1, 1))))
    steps = o.lstm(o.reshape(y, shape=(64, 1, 1024)), values(x, 1, 64, 1024) * 0.01,
                   values(x, 1, 64, 16) * 0.05, values(x, 1, 128) * 0.1)[0]
    return o.softmax(y, axis=1), steps


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package in it."""
    folder = tmp_path_factory.mktemp("site")
    built = graphtool.build(module(net, "f32[1,16,32,32]"), folder / "b", name="small",
                            target="wasm32-threads", precision="strict")
    return pages.site(folder, built, RESULTS)


RESULTS = """
export async function results(load, threads) {
  const x0 = new Float32Array(16 * 32 * 32).map((_, i) => Math.sin(i * 0.37)), all = [];
  for (const count of threads) {
    const model = await load({}, { threads: count });
    for (let run = 0; run < 5; run++) {
      const words = Object.values(await model.run({ x0 })).flatMap(
        ({ data }) => [...new Uint32Array(data.buffer)]);
      all.push(words.reduce((hash, word) => (Math.imul(hash, 31) + word) | 0, 0));
    }
    model.close();
  }
  return JSON.stringify([all.length, new Set(all).size, all[0]]);
}
"""
NODE = """
{before}
const {{ load }} = await import("./package/index.js");
const {{ results }} = await import("./results.js");
console.log(await results(load, [1, 2, 3]));
"""
PAGE = """
(async () => {{
  const {{ load }} = await import("/package/{module}.js");
  const {{ results }} = await import("/results.js");
  return (crossOriginIsolated ? "" : "alone ") + await results(load, [1, 2, 3]);
}})()
"""


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("ziglang") and shutil.which("node")), reason="zig and node")
def test_threads_change_no_bit(site: Path) -> None:
    want = pages.in_node(site, NODE.format(before=""))
    assert want.startswith("[15,1,")
    # without shared memory there is one thread, of the other module
    (site / "package" / "small.threads.wasm").rename(site / "away")
    alone = NODE.format(before="delete globalThis.SharedArrayBuffer;")
    assert pages.in_node(site, alone) == want
    (site / "away").rename(site / "package" / "small.threads.wasm")
    if found():
        for got in pages.in_pages(site, [PAGE.format(module=m) for m in ("index", "worker")]):
            assert got == want


USE = """
import { load, Model, Outputs } from "./package/index.js";
import { load as later } from "./package/worker.js";
async function main(): Promise<void> {
  const model: Model = await load({}, { threads: 2 });
  const out: Outputs = model.run({ x0: new Float32Array(1) });
  model.close();
  const there = await later(), same: Outputs = await there.run({ x0: new Float32Array(1) });
  there.close();
  console.log(Object.values(out)[0].shape, same);
}
// @ts-expect-error a wrong type of input
load().then((m) => m.run({ x0: [1] }));
// @ts-expect-error no such option
load({}, { thread: 2 });
main();
"""


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("ziglang") and shutil.which("tsc")), reason="zig and tsc")
def test_the_types_are_strict(site: Path) -> None:
    (site / "use.ts").write_text(USE)
    done = subprocess.run(["tsc", "--strict", "--noEmit", "--target", "es2022", "--module",
                           "nodenext", "--lib", "es2022,dom", "use.ts"], cwd=site,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
