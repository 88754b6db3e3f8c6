"""Each package is used by a program of its ecosystem, from a folder of its own and offline, and
gives the numbers that the build gives."""

from __future__ import annotations

import json
import platform
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import graphtool
from graphtool import ops
from graphtool.errors import GraphtoolError
from graphtool.io.manifest import read_manifest
from graphtool.package import go
from graphtool.package.forms import FORMS, package
from graphtool.package.record import Subject
from graphtool.train.model import TrainModel
from tests.package.conftest import Sample, expected, numbers, run
from tests.package.ecosystems import ECOSYSTEMS
from tests.passes.pass_samples import SAMPLES, module


def need(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if e.slow else n
                                  for n, e in ECOSYSTEMS.items()])
def test_a_program_of_the_ecosystem(name: str, sample: Sample, tmp_path: Path) -> None:
    row = ECOSYSTEMS[name]
    if row.missing:
        pytest.skip(f"{row.missing} is not installed")
    given = row.sample(tmp_path) if row.sample else sample
    *_, said = row.steps(given, tmp_path)
    np.testing.assert_allclose(numbers(said), expected(given), rtol=1e-5, atol=1e-6)


def test_a_wheel_is_typed(sample: Sample, tmp_path: Path) -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    with zipfile.ZipFile(package(sample.build, "wheel", tmp_path).path) as archive:
        archive.extract("small/__init__.py", tmp_path)
    run(sys.executable, "-m", "mypy", "--strict", "--follow-imports=skip", "--cache-dir",
        tmp_path / "cache", "small/__init__.py", cwd=tmp_path)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """A build of a function and its derivative over one set of weights, one of them with a name
    that languages reserve, and what they give for ones."""
    folder = tmp_path_factory.mktemp("several")
    f = graphtool.import_model(torch.nn.Linear(3, 2), (torch.zeros(4, 3),))
    built = graphtool.build({"class": f, "vjp": graphtool.vjp(f)}, folder / "b", name="net")
    ones = {p.name: np.ones(p.shape, "f4")  # type: ignore[arg-type]
            for p in graphtool.load(built, entry="vjp").manifest.inputs}
    want = graphtool.load(built, entry="vjp").run(ones).values()
    return built, np.concatenate([y.ravel() for y in want])


def test_a_wheel_of_entry_points(several: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    built, want = several
    path = package(built, "wheel", tmp_path / "out").path
    run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target",
        tmp_path / "site", path, cwd=tmp_path)
    script = ("import net, numpy as np\n"
              "x, g = np.ones((4, 3), 'f4'), np.ones((4, 2), 'f4')\n"
              "first = net.class_.run(x)\n"
              "print(*first[0].ravel(), *net.vjp.run(x, g)[1].ravel())\n"
              "first, back = np.zeros((4, 2), 'f4'), np.zeros((4, 3), 'f4')\n"
              "net.vjp.run_into([x, g], [first, back])\n"
              "assert (back == net.vjp.run(x, g)[1]).all()\n"
              "assert net.__all__ == ['class_', 'vjp'] and net.vjp.Outputs._fields[1:]\n")
    said = numbers(run(sys.executable, "-c", script, cwd=tmp_path,
                       PYTHONPATH=str(tmp_path / "site")))
    np.testing.assert_allclose(said, want, rtol=1e-5)


ENTRIES_RUST = """
use net::{ClassDims, ClassInputs, Model, VjpDims, VjpInputs};
fn main() {
    let (x, g) = ([1f32; 12], [1f32; 8]);
    let mut model = Model::new();
    let first = model.class_(ClassDims {}, ClassInputs { input: &x }, 1).unwrap();
    let second = VjpInputs { input: &x, output_cotangent: &g };
    let back = model.vjp(VjpDims {}, second, 1).unwrap();
    assert_eq!(back.cotangent_input.shape, [4, 3]);
    for v in first.output.data.iter().chain(&back.cotangent_input.data) { println!("{v}"); }
}
"""
ENTRIES_GO = """package main

import (
\t"fmt"
\t"model/net"
)

func main() {
\tx, g := make([]float32, 12), make([]float32, 8)
\tfor i := range x {
\t\tx[i] = 1
\t\tg[i%8] = 1
\t}
\tm := net.New()
\tdefer m.Close()
\tfirst, err := m.Class(net.ClassDims{}, net.ClassInputs{Input: x}, 1)
\tif err != nil {
\t\tpanic(err)
\t}
\tback, err := m.Vjp(net.VjpDims{}, net.VjpInputs{Input: x, OutputCotangent: g}, 1)
\tif err != nil {
\t\tpanic(err)
\t}
\tfor _, v := range append(first.Output, back.CotangentInput...) {
\t\tfmt.Println(v)
\t}
\tif _, err = m.Vjp(net.VjpDims{}, net.VjpInputs{Input: x}, 1); err == nil {
\t\tpanic("took a wrong array")
\t}
}
"""
ENTRIES_CPP = """
#include "net.hpp"
#include <cstdio>
int main(int, char **argv)
{
    const std::vector<float> x(12, 1), g(8, 1);
    net::model model(argv[1]);
    const net::class_outputs first = model.class_({}, {x}, 1);
    const net::vjp_outputs back = model.vjp({}, {x, g}, 1);
    for (float v : first.output.data) std::printf("%.9g ", v);
    for (float v : back.cotangent_input.data) std::printf("%.9g ", v);
    try { model.vjp({}, {x, x}, 1); } catch (const std::invalid_argument &) { return 0; }
    return 1;
}
"""


def entries_in_rust(built: Path, work: Path) -> str:
    path, app = package(built, "cargo", work).path, work / "app"
    (app / "src").mkdir(parents=True)
    (app / "Cargo.toml").write_text(
        f'[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
        f'net = {{ path = "{path}" }}\n')
    (app / "src" / "main.rs").write_text(ENTRIES_RUST)
    return run("cargo", "run", "-q", "--offline", cwd=app)


def entries_in_go(built: Path, work: Path) -> str:
    path, app = package(built, "go", work).path, work / "app"
    app.mkdir()
    (app / "go.mod").write_text(
        f"module app\n\ngo 1.16\n\nrequire model/net v1.0.0\n\nreplace model/net => {path}\n")
    (app / "main.go").write_text(ENTRIES_GO)
    return run("go", "run", ".", cwd=app, GOFLAGS="-mod=mod", GOPROXY="off",
               GOCACHE=str(work / "cache"))


def entries_in_cmake(built: Path, work: Path) -> str:
    with tarfile.open(package(built, "cmake", work).path) as archive:
        archive.extractall(work, filter="data")
    root = work / "net-1.0.0"
    (work / "app.cpp").write_text(ENTRIES_CPP)
    run("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{root}/include/net", "app.cpp",
        f"-L{root}/lib", "-lnet", f"-Wl,-rpath,{root}/lib", "-o", "app", cwd=work)
    return run(work / "app", root / "share" / "net" / "net.safetensors", cwd=work)


@pytest.mark.parametrize(("tool", "said"), [
    ("cargo", entries_in_rust), ("go", entries_in_go), ("g++", entries_in_cmake)])
def test_entry_points(tool: str, said: Callable[[Path, Path], str],
                      several: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    """A typed function for each of them, over one set of weights."""
    need(tool)
    np.testing.assert_allclose(numbers(said(several[0], tmp_path)), several[1], rtol=1e-5)


NPM_TRAINS = """
import { load } from "./package/index.js";
const model = await load(), y = Float32Array.of(1, 1);
const input = Float32Array.of(1, 2, 3, 4, 5, 6);
const outputs = () => [...Object.values(model.predict({ input }))[0].data];
const first = outputs();
const losses = [1, 2, 3].map(() => model.step({ input, y, lr: 0.01 }).loss.data[0]);
const state = model.state, trained = outputs();
model.reset();
if (String(outputs()) !== String(first)) throw new Error("reset");
model.state = state;
if (String(outputs()) !== String(trained)) throw new Error("state");
console.log([...first, ...losses].join(" "));
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed")
def test_npm_trains(tmp_path: Path) -> None:
    """The package of a training graph: its functions work on one state, as they do here."""
    need("node")
    module = graphtool.import_model(torch.nn.Linear(3, 1), (torch.zeros(2, 3),))
    step = graphtool.grad(module, graphtool.Recipe("mse", optimizer="sgd"))
    built = graphtool.build(step, tmp_path / "b", name="line", target="wasm32", single=True)
    with tarfile.open(package(built, "npm", tmp_path).path) as archive:
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "app.mjs").write_text(NPM_TRAINS)
    said = numbers(run("node", "app.mjs", cwd=tmp_path))
    here = TrainModel(graphtool.build(step, tmp_path / "c", name="line"), 1)
    (x,) = here.inputs
    batch = {x: np.arange(1, 7, dtype=np.float32).reshape(2, 3), "y": np.ones((2, 1), np.float32)}
    (first,) = here.predict({x: batch[x]})
    np.testing.assert_allclose(said, [*first.ravel(), *(here.step(batch, 0.01) for _ in range(3))],
                               rtol=1e-5)


# ---- what cannot be, and what stays the same ---------------------------------------------------

def test_embedded_weights_go_into_sources(tmp_path: Path) -> None:
    build = graphtool.build(SAMPLES["convnet"], tmp_path / "b", name="small", weights="embed")
    path = Path(package(build, "single", tmp_path).path)
    assert not list(path.glob("*.safetensors")) and not list(path.glob("*.bin"))
    run("cc", "-O1", "-Wno-psabi", "small.c", "small_example.c", "-lm", "-o", "app", cwd=path)
    assert run("./app", cwd=path).startswith("outputs[0]:")


@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"npm", "casadi"}))
def test_equal_builds_give_equal_bytes(form: str, sample: Sample, tmp_path: Path) -> None:
    def made(out: Path) -> dict[str, bytes]:
        package(sample.build, form, out)
        package(sample.build, form, out)  # replaces it
        return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert made(tmp_path / "a") == made(tmp_path / "b") != {}


@pytest.mark.parametrize(("form", "options", "code"), [
    ("cargo", {"target": "fat"}, "GT2242"), ("wheel", {"static": True}, "GT2242"),
    ("go", {"name": "func"}, "GT2242"), ("npm", {"name": "net"}, "GT2242"), ("egg", {}, "GT2240")])
def test_what_cannot_be_packaged(form: str, options: dict[str, object], code: str,
                                 tmp_path: Path) -> None:
    build = graphtool.build(module(ops.neg, "f32[3]"), tmp_path / "b",
                            **{"name": "small", **options})  # type: ignore[arg-type]
    with pytest.raises(GraphtoolError) as found:
        package(build, form, tmp_path / "out")
    assert found.value.code == code and not (tmp_path / "out").exists()


HERE = {"x86_64": "x86_64 amd64", "aarch64": "aarch64 arm64"}


@pytest.mark.parametrize(("target", "arch"), [
    ("x86-64-v3", "x86_64 amd64"), ("aarch64-linux", "aarch64 arm64"), ("armv7-linux", "arm arm"),
    ("generic", ""), ("one of a plug-in", ""), ("native", HERE.get(platform.machine(), ""))])
def test_flags_are_for_the_machine_of_the_build(target: str, arch: str, sample: Sample) -> None:
    manifest = replace(read_manifest(sample.build), target=target, flags=["-O3", "-mtune=x"])
    subject = Subject(sample.build, manifest, "1.2")
    rust, go_arch = arch.split() or ("", "")
    made = FORMS["cargo"].make(subject)
    assert f'"CARGO_CFG_TARGET_ARCH").unwrap() == "{rust}" {{' in made["build.rs"].decode()
    assert 'version = "1.2.0"' in made["Cargo.toml"].decode()
    text = FORMS["go"].make(subject)[f"{subject.name}.go"].decode()
    assert (f"#cgo {go_arch} CFLAGS: -mtune=x" in text) if go_arch else "-mtune=x" not in text


def test_a_directory_of_others_stays(sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "small-go").mkdir()
    (tmp_path / "small-go" / "precious").write_text("")
    with pytest.raises(GraphtoolError) as found:
        package(sample.build, "go", tmp_path)
    assert found.value.code == "GT2112" and (tmp_path / "small-go" / "precious").exists()


def test_no_name_of_the_model_is_written_as_it_is(sample: Sample, tmp_path: Path) -> None:
    for form in ("wheel", "cargo", "go"):
        made = package(sample.build, form, tmp_path)
        names = json.dumps(sorted(made.files))
        assert "script>" not in names
    for path in (tmp_path / "small-go" / "small.go", tmp_path / "small-cargo" / "src" / "lib.rs"):
        assert not {"${", '"""', "<script>"} & {w for w in ("${", '"""', "<script>")
                                                if w in path.read_text()}


def test_go_gets_no_flag_that_cgo_refuses(sample: Sample, tmp_path: Path) -> None:
    """Its list has -march= and -mavx2, but not -mprefer-vector-width=, which this machine has."""
    known = replace(read_manifest(sample.build),
                    flags=["-march=native", "-mprefer-vector-width=512"])
    subject = Subject(sample.build, known, "1.0.0")
    text = go.make(subject)[f"{subject.name}.go"].decode()
    assert "CFLAGS: -march=native\n" in text and "prefer" not in text
