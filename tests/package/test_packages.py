"""Each package is used by a program of its ecosystem, from a folder of its own and offline, and
gives the numbers that the build gives."""

from __future__ import annotations

import json
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
from tests.package.conftest import N, Sample, expected, numbers, run
from tests.passes.pass_samples import SAMPLES, module


def need(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def agrees(text: str, sample: Sample) -> None:
    np.testing.assert_allclose(numbers(text), expected(sample), rtol=1e-5, atol=1e-6)


def flat(values: object) -> str:
    return ", ".join(f"{v:.6f}" for v in np.ravel(values))  # type: ignore[arg-type]


def test_wheel(sample: Sample, tmp_path: Path) -> None:
    path = Path(package(sample.build, "wheel", tmp_path / "out").path)
    run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target",
        tmp_path / "site", path, cwd=tmp_path)  # checks the tag and the hashes of RECORD
    assert (tmp_path / "site" / "small" / "py.typed").exists()
    script = (f"import small, numpy as np, sys\n"
              f"x = np.array([{flat(sample.x)}], np.float32).reshape({N}, 4)\n"
              f"scale = np.arange(5, dtype=np.float32)\n"
              f"out = small.run(x, scale)\n"
              f"print(*out[0].ravel(), *out[1])\n"
              f"assert 'graphtool' not in sys.modules\n"
              f"for wrong in (x[:, :3], x.astype(float), x[0]):\n"
              f"    try: small.run(wrong, scale)\n"
              f"    except ValueError: continue\n"
              f"    raise SystemExit('took a wrong array')\n")
    agrees(run(sys.executable, "-c", script, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site")),
           sample)


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


def test_cargo(sample: Sample, tmp_path: Path) -> None:
    need("cargo")
    path = package(sample.build, "cargo", tmp_path).path
    app = tmp_path / "app"
    (app / "src").mkdir(parents=True)
    (app / "Cargo.toml").write_text(
        f'[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
        f'small = {{ path = "{path}" }}\n')
    (app / "src" / "main.rs").write_text(f"""
use small::{{Dims, Error, Inputs, Model}};
fn main() {{
    let x = [{flat(sample.x)}];
    let scale: [f32; 5] = [{flat(sample.scale)}];
    let mut model = Model::new();
    let inputs = Inputs {{ class_x_x_script: &x, fn_: &scale }};
    let out = model.run(Dims {{ for_: {N} }}, inputs, 1).unwrap();
    assert_eq!(out.return_.shape, [{N}, 5]);
    for v in out.return_.data.iter().chain(&out.class_x_x_script_2.data) {{ println!("{{v}}"); }}
    let wrong = model.run(Dims {{ for_: 2 }}, inputs, 1);
    assert!(matches!(wrong, Err(Error::Length {{ .. }})));
    assert!(matches!(model.run(Dims {{ for_: -1 }}, inputs, 1), Err(Error::Status(..))));
}}
""")
    agrees(run("cargo", "run", "-q", "--offline", cwd=app), sample)


def test_go(sample: Sample, tmp_path: Path) -> None:
    need("go")
    path = package(sample.build, "go", tmp_path).path
    app = tmp_path / "app"
    app.mkdir()
    (app / "go.mod").write_text(
        f"module app\n\ngo 1.16\n\nrequire model/small v1.0.0\n\nreplace model/small => {path}\n")
    (app / "main.go").write_text("""package main

import (
\t"fmt"
\t"small"
)

func main() {}
""".replace('"small"', 'model "model/small"').replace("func main() {}", f"""func main() {{
\tx := []float32{{{flat(sample.x)}}}
\tscale := []float32{{{flat(sample.scale)}}}
\tm := model.New()
\tdefer m.Close()
\tout, err := m.Run(model.Dims{{For: {N}}}, model.Inputs{{ClassXXScript: x, Fn: scale}}, 1)
\tif err != nil || out.ReturnShape[0] != {N} {{
\t\tpanic(err)
\t}}
\tfor _, v := range append(out.Return, out.ClassXXScript2...) {{
\t\tfmt.Println(v)
\t}}
\tin := model.Inputs{{ClassXXScript: x, Fn: scale}}
\tif _, err = m.Run(model.Dims{{For: 2}}, in, 1); err == nil {{
\t\tpanic("took a wrong array")
\t}}
}}"""))
    agrees(run("go", "run", ".", cwd=app, GOFLAGS="-mod=mod", GOPROXY="off",
               GOCACHE=str(tmp_path / "cache")), sample)


def test_npm(sample: Sample, tmp_path: Path) -> None:
    need("npm")
    if find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed")
    path = package(sample.build, "npm", tmp_path).path
    app = tmp_path / "app"
    app.mkdir()
    (app / "package.json").write_text('{"name": "app", "private": true, "type": "module"}')
    run("npm", "install", "--offline", "--no-audit", "--no-fund", path, cwd=app)
    (app / "app.js").write_text(f"""
import {{ load }} from "small";
const model = await load();
const x = new Float32Array([{flat(sample.x)}]), fn_ = new Float32Array([{flat(sample.scale)}]);
const out = model.run({{ class_x_x_script: x, fn_ }}, {{ for_: {N} }});
console.log([...out.return_.data, ...out.class_x_x_script_2.data].join(" "));
let caught = 0;
for (const wrong of [{{ for_: 2 }}, {{}}, {{ for_: -1 }}]) {{
  try {{ model.run({{ class_x_x_script: x, fn_ }}, wrong); }} catch {{ caught++; }}
}}
if (caught !== 3) throw new Error("took wrong sizes");
""")
    agrees(run("node", "app.js", cwd=app), sample)


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


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "small.h"
int main(int argc, char **argv)
{{
    const int64_t dims[] = {{{n}}};
    const float x[] = {{{x}}}, scale[] = {{{scale}}};
    float y[{n} * 5], sums[{n}];
    small_weights weights;
    int status = small_load(&weights, argc > 1 ? argv[1] : NULL);
    void *arena = aligned_alloc(64, small_arena_bytes(dims) + 64);
    const void *inputs[] = {{x, scale}};
    void *outputs[] = {{y, sums}};
    if (!status)
        status = small_run(weights.data, arena, dims, inputs, outputs, 1);
    for (int i = 0; i < {n} * 5; i++) printf("%.9g ", y[i]);
    for (int i = 0; i < {n}; i++) printf("%.9g ", sums[i]);
    return status;
}}
"""


def c_program(sample: Sample, path: Path) -> None:
    path.write_text(MAIN.format(n=N, x=flat(sample.x), scale=flat(sample.scale)))


def test_cmake(sample: Sample, tmp_path: Path) -> None:
    need("cmake")
    with tarfile.open(package(sample.build, "cmake", tmp_path).path) as archive:
        archive.extractall(tmp_path / "prefix", filter="data")
    prefix, app = tmp_path / "prefix" / "small-1.0.0", tmp_path / "app"
    app.mkdir()
    c_program(sample, app / "app.c")
    (app / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\nfind_package(small 1.0 REQUIRED)\n"
        "add_executable(app app.c)\ntarget_link_libraries(app small::small)\n"
        'file(WRITE weights "${small_WEIGHTS}")\n')
    run("cmake", "-B", "out", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=app)
    run("cmake", "--build", "out", cwd=app)
    agrees(run(app / "out" / "app", (app / "weights").read_text(), cwd=tmp_path), sample)


def test_deb(sample: Sample, tmp_path: Path) -> None:
    need("dpkg-deb")
    path = package(sample.build, "deb", tmp_path, "1.2").path
    root = tmp_path / "root"
    assert run("dpkg-deb", "--field", path, "Package", "Version", cwd=tmp_path) == (
        "Package: libsmall-dev\nVersion: 1.2\n")
    run("dpkg-deb", "--extract", path, root, cwd=tmp_path)
    c_program(sample, tmp_path / "app.c")
    run("cc", "app.c", f"-I{root}/usr/include/small", f"-L{root}/usr/lib", "-lsmall", "-o", "app",
        cwd=tmp_path)
    agrees(run(tmp_path / "app", root / "usr/share/small/small.safetensors", cwd=tmp_path,
               LD_LIBRARY_PATH=f"{root}/usr/lib"), sample)


def test_single(sample: Sample, tmp_path: Path) -> None:
    path = Path(package(sample.build, "single", tmp_path).path)
    c_program(sample, path / "app.c")
    run("cc", "-O1", "-Wno-psabi", "app.c", "small.c", "-lm", "-o", "app", cwd=path)
    agrees(run(path / "app", "small.safetensors", cwd=path), sample)


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


@pytest.mark.parametrize(("target", "arch"), [
    ("x86-64-v3", "x86_64"), ("aarch64-linux", "aarch64"), ("armv7-linux", "arm"), ("generic", "")])
def test_flags_of_a_crate_are_for_its_machine(target: str, arch: str, sample: Sample) -> None:
    manifest = replace(read_manifest(sample.build), target=target)
    made = FORMS["cargo"].make(Subject(sample.build, manifest, "1.2"))
    assert f'"CARGO_CFG_TARGET_ARCH").unwrap() == "{arch}" {{' in made["build.rs"].decode()
    assert 'version = "1.2.0"' in made["Cargo.toml"].decode()


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


# ---- C++ and Fortran ---------------------------------------------------------------------------

CPP = """
#include <array>
#include <cstdio>
#include <type_traits>
#include "small.hpp"
static_assert(!std::is_copy_constructible_v<small::model>);
int main(int, char **argv)
{{
    const std::vector<float> x = {{{x}}};
    const std::array<float, 5> scale = {{{scale}}};
    small::model first(argv[1]), model(std::move(first));
    const small::inputs in = {{x, scale}};
    const small::outputs out = model.run({{{n}}}, in, 1);
    if (out.return_.shape != std::vector<std::int64_t>{{{n}, 5}}) return 1;
    for (float v : out.return_.data) std::printf("%.9g ", v);
    for (float v : out.class_x_x_script_2.data) std::printf("%.9g ", v);
    int caught = 0;
    try {{ model.run({{2}}, in, 1); }} catch (const std::invalid_argument &) {{ caught++; }}
    try {{ model.run({{-1}}, in, 1); }} catch (const small::error &e) {{
        caught += e.status == SMALL_BAD_DIM;
    }}
    try {{ small::model("/no/file"); }} catch (const small::error &e) {{
        caught += e.status == SMALL_NO_FILE;
    }}
    return caught != 3;
}}
"""
FORTRAN = """
program main
  use small
  implicit none
  type(small_weights) :: weights
  real(c_float), target :: x(4, {n}), scale(5), y(5, {n}), sums({n})
  integer(c_int64_t) :: dims(1)
  integer(c_int) :: status
  character(len=512) :: path
  integer :: i
  call get_command_argument(1, path)
  status = small_load(weights, trim(path) // c_null_char)
  if (status /= 0) stop 1
  x = reshape([(real(i, c_float) / 8, i = 0, 4 * {n} - 1)], [4, {n}])
  scale = [(real(i, c_float), i = 0, 4)]
  dims(1) = {n}
  status = small_run(weights%data, small_aligned(64_c_size_t, small_arena_bytes(dims)), dims, &
                     [c_loc(x), c_loc(scale)], [c_loc(y), c_loc(sums)], 1_c_int)
  if (status /= 0) stop 2
  print '(*(g0, " "))', y, sums
  call small_free(weights)
end program
"""


@pytest.mark.parametrize("std", ["c++17", "c++20"])
def test_cpp(std: str, sample: Sample, tmp_path: Path) -> None:
    need("g++")
    path = Path(package(sample.build, "single", tmp_path).path)
    (path / "app.cpp").write_text(CPP.format(n=N, x=flat(sample.x), scale=flat(sample.scale)))
    run("g++", f"-std={std}", "-Wall", "-Wextra", "-Werror", "-pedantic", "app.cpp",
        sample.build / "libsmall.so", "-o", "app", cwd=path)
    agrees(run(path / "app", "small.safetensors", cwd=path, LD_LIBRARY_PATH=str(sample.build)),
           sample)


def test_fortran(sample: Sample, tmp_path: Path) -> None:
    need("gfortran")
    path = Path(package(sample.build, "single", tmp_path).path)
    (path / "app.f90").write_text(FORTRAN.format(n=N))
    run("gfortran", "-Wall", "small.f90", "app.f90", sample.build / "libsmall.so", "-o", "app",
        cwd=path)
    agrees(run(path / "app", "small.safetensors", cwd=path, LD_LIBRARY_PATH=str(sample.build)),
           sample)


def test_go_gets_no_flag_that_cgo_refuses(sample: Sample, tmp_path: Path) -> None:
    """Its list has -march= and -mavx2, but not -mprefer-vector-width=, which this machine has."""
    known = replace(read_manifest(sample.build),
                    flags=["-march=native", "-mprefer-vector-width=512"])
    subject = Subject(sample.build, known, "1.0.0")
    text = go.make(subject)[f"{subject.name}.go"].decode()
    assert "CFLAGS: -march=native\n" in text and "prefer" not in text
