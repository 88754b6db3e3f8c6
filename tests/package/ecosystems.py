"""Programs of other ecosystems that use a package, in the way of a person there: from an empty
folder, with the tools of the ecosystem, offline.

Each is a generator. It yields "installs" when the ecosystem's tool has taken the package, "builds"
when its program is compiled, and at last what the program printed: all results as numbers. The
tests run them, and `python -m tests.lab ecosystems` makes a table of them.
"""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

import graphtool
from graphtool.native import runtime
from graphtool.package.forms import package
from tests.package.conftest import N, Sample, run

INSTALLS, BUILDS = "installs", "builds"


def flat(values: object) -> str:
    return ", ".join(f"{v:.6f}" for v in np.ravel(values))  # type: ignore[arg-type]


def wheel(sample: Sample, work: Path) -> Iterator[str]:
    """pip checks the tag and the hashes of RECORD; the wheel needs numpy and no graphtool."""
    path = package(sample.build, "wheel", work / "out").path
    run(sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target",
        work / "site", path, cwd=work)
    assert (work / "site" / "small" / "py.typed").exists()
    yield INSTALLS
    script = (f"import small, sys\n"
              f"from array import array\n"
              f"assert 'numpy' not in sys.modules\n"
              f"y, sums = bytearray({N} * 5 * 4), array('f', bytes({N} * 4))\n"
              f"given = array('f', [{flat(sample.x)}]), array('f', range(5)).tobytes()\n"
              f"shapes = small.run_into(given, (y, sums), for_={N})\n"
              f"assert shapes == (({N}, 5), ({N},)) and 'numpy' not in sys.modules\n"
              f"for bad in ((given[:1], (y, sums), {N}), (given, (bytes(y), sums), {N}),\n"
              f"            (given, (y, sums), 2), (given, (y, sums), -1)):\n"
              f"    try: small.run_into(*bad[:2], for_=bad[2])\n"
              f"    except ValueError: continue\n"
              f"    raise SystemExit('took a wrong buffer')\n"
              f"import numpy as np\n"
              f"x = np.array([{flat(sample.x)}], np.float32).reshape({N}, 4)\n"
              f"scale = np.arange(5, dtype=np.float32)\n"
              f"out = small.run(x, scale)\n"
              f"assert y == out[0].tobytes() and sums.tobytes() == out[1].tobytes()\n"
              f"print(*out[0].ravel(), *out[1])\n"
              f"assert 'graphtool' not in sys.modules\n"
              f"for wrong in (x[:, :3], x.astype(float), x[0]):\n"
              f"    try: small.run(wrong, scale)\n"
              f"    except ValueError: continue\n"
              f"    raise SystemExit('took a wrong array')\n")
    yield run(sys.executable, "-c", script, cwd=work, PYTHONPATH=str(work / "site"))


RUST = """
use small::{{Dims, Error, Inputs, Model}};
fn main() {{
    let x = [{x}];
    let scale: [f32; 5] = [{scale}];
    let mut model = Model::new();
    let inputs = Inputs {{ class_x_x_script: &x, fn_: &scale }};
    let out = model.run(Dims {{ for_: {n} }}, inputs, 1).unwrap();
    assert_eq!(out.return_.shape, [{n}, 5]);
    for v in out.return_.data.iter().chain(&out.class_x_x_script_2.data) {{ println!("{{v}}"); }}
    let wrong = model.run(Dims {{ for_: 2 }}, inputs, 1);
    assert!(matches!(wrong, Err(Error::Length {{ .. }})));
    assert!(matches!(model.run(Dims {{ for_: -1 }}, inputs, 1), Err(Error::Status(..))));
}}
"""


def cargo(sample: Sample, work: Path) -> Iterator[str]:
    path, app = package(sample.build, "cargo", work).path, work / "app"
    run("cargo", "new", "-q", "--vcs", "none", "app", cwd=work)
    run("cargo", "add", "-q", "--offline", "--path", path, cwd=app)
    yield INSTALLS
    (app / "src" / "main.rs").write_text(of(RUST, sample))
    run("cargo", "build", "-q", "--offline", cwd=app)
    yield BUILDS
    yield run(app / "target" / "debug" / "app", cwd=app)


GO = """package main

import (
\t"fmt"
\tmodel "model/small"
)

func main() {{
\tx := []float32{{{x}}}
\tscale := []float32{{{scale}}}
\tm := model.New()
\tdefer m.Close()
\tin := model.Inputs{{ClassXXScript: x, Fn: scale}}
\tout, err := m.Run(model.Dims{{For: {n}}}, in, 1)
\tif err != nil || out.ReturnShape[0] != {n} {{
\t\tpanic(err)
\t}}
\tfor _, v := range append(out.Return, out.ClassXXScript2...) {{
\t\tfmt.Println(v)
\t}}
\tif _, err = m.Run(model.Dims{{For: 2}}, in, 1); err == nil {{
\t\tpanic("took a wrong array")
\t}}
}}
"""


def go(sample: Sample, work: Path) -> Iterator[str]:
    path, app = package(sample.build, "go", work).path, work / "app"
    app.mkdir()
    offline = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOCACHE": str(work / "cache")}
    run("go", "mod", "init", "app", cwd=app, **offline)
    run("go", "mod", "edit", "-require", "model/small@v1.0.0", "-replace", f"model/small={path}",
        cwd=app, **offline)
    yield INSTALLS
    (app / "main.go").write_text(of(GO, sample))
    run("go", "build", "-o", "app", cwd=app, **offline)
    yield BUILDS
    yield run(app / "app", cwd=app)


NODE = """
import {{ load }} from "small";
const model = await load();
const x = new Float32Array([{x}]), fn_ = new Float32Array([{scale}]);
const out = model.run({{ class_x_x_script: x, fn_ }}, {{ for_: {n} }});
console.log([...out.return_.data, ...out.class_x_x_script_2.data].join(" "));
let caught = 0;
for (const wrong of [{{ for_: 2 }}, {{}}, {{ for_: -1 }}]) {{
  try {{ model.run({{ class_x_x_script: x, fn_ }}, wrong); }} catch {{ caught++; }}
}}
if (caught !== 3) throw new Error("took wrong sizes");
"""


def npm(sample: Sample, work: Path) -> Iterator[str]:
    path, app = package(sample.build, "npm", work).path, work / "app"
    app.mkdir()
    (app / "package.json").write_text('{"name": "app", "private": true, "type": "module"}')
    run("npm", "install", "--offline", "--no-audit", "--no-fund", path, cwd=app)
    yield INSTALLS
    (app / "app.js").write_text(of(NODE, sample))
    yield run("node", "app.js", cwd=app)


C = """
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


def cmake(sample: Sample, work: Path) -> Iterator[str]:
    with tarfile.open(package(sample.build, "cmake", work).path) as archive:
        archive.extractall(work / "prefix", filter="data")
    prefix, app = work / "prefix" / "small-1.0.0", work / "app"
    app.mkdir()
    (app / "app.c").write_text(of(C, sample))
    (app / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(app C)\nfind_package(small 1.0 REQUIRED)\n"
        "add_executable(app app.c)\ntarget_link_libraries(app small::small)\n"
        'file(WRITE weights "${small_WEIGHTS}")\n')
    run("cmake", "-B", "out", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=app)
    yield INSTALLS
    run("cmake", "--build", "out", cwd=app)
    yield BUILDS
    yield run(app / "out" / "app", (app / "weights").read_text(), cwd=work)


def deb(sample: Sample, work: Path) -> Iterator[str]:
    path = package(sample.build, "deb", work, "1.2").path
    root = work / "root"
    assert run("dpkg-deb", "--field", path, "Package", "Version", cwd=work) == (
        "Package: libsmall-dev\nVersion: 1.2\n")
    run("dpkg-deb", "--extract", path, root, cwd=work)
    yield INSTALLS
    (work / "app.c").write_text(of(C, sample))
    run("cc", "app.c", f"-I{root}/usr/include/small", f"-L{root}/usr/lib", "-lsmall", "-o", "app",
        cwd=work)
    yield BUILDS
    yield run(work / "app", root / "usr/share/small/small.safetensors", cwd=work,
              LD_LIBRARY_PATH=f"{root}/usr/lib")


def single(sample: Sample, work: Path) -> Iterator[str]:
    path = Path(package(sample.build, "single", work).path)
    yield INSTALLS
    (path / "app.c").write_text(of(C, sample))
    run("cc", "-O1", "-Wno-psabi", "app.c", "small.c", "-lm", "-o", "app", cwd=path)
    yield BUILDS
    yield run(path / "app", "small.safetensors", cwd=path)


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


def cpp(std: str) -> Callable[[Sample, Path], Iterator[str]]:
    def steps(sample: Sample, work: Path) -> Iterator[str]:
        path = Path(package(sample.build, "single", work).path)
        yield INSTALLS
        (path / "app.cpp").write_text(of(CPP, sample))
        run("g++", f"-std={std}", "-Wall", "-Wextra", "-Werror", "-pedantic", "app.cpp",
            sample.build / "libsmall.so", "-o", "app", cwd=path)
        yield BUILDS
        yield run(path / "app", "small.safetensors", cwd=path, LD_LIBRARY_PATH=str(sample.build))
    return steps


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


def fortran(sample: Sample, work: Path) -> Iterator[str]:
    path = Path(package(sample.build, "single", work).path)
    yield INSTALLS
    (path / "app.f90").write_text(of(FORTRAN, sample))
    run("gfortran", "-Wall", "small.f90", "app.f90", sample.build / "libsmall.so", "-o", "app",
        cwd=path)
    yield BUILDS
    yield run(path / "app", "small.safetensors", cwd=path, LD_LIBRARY_PATH=str(sample.build))


OCTAVE = """
#include <octave/oct.h>
#include "small.hpp"
DEFUN_DLD(small_oct, args, , "[y; sums] = small_oct(x, scale)")
{{
    static small::model model("small.safetensors");
    const FloatMatrix x = args(0).float_matrix_value().transpose();
    const FloatMatrix scale = args(1).float_matrix_value();
    const small::span<float> rows(x.data(), x.numel()), factors(scale.data(), scale.numel());
    const small::outputs out = model.run({{x.cols()}}, {{rows, factors}}, 1);
    FloatRowVector all(out.return_.data.size() + out.class_x_x_script_2.data.size());
    octave_idx_type i = 0;
    for (float v : out.return_.data) all(i++) = v;
    for (float v : out.class_x_x_script_2.data) all(i++) = v;
    return octave_value(all);
}}
"""


def octave(sample: Sample, work: Path) -> Iterator[str]:
    path = Path(package(sample.build, "single", work).path)
    yield INSTALLS
    (path / "small_oct.cc").write_text(of(OCTAVE, sample))
    run("cc", "-O1", "-fPIC", "-Wno-psabi", "-c", "small.c", cwd=path)
    run("mkoctfile", "small_oct.cc", "small.o", cwd=path)
    yield BUILDS
    yield run("octave-cli", "--no-init-file", "--eval", "x = single(reshape(0:4*"
              f"{N}-1, 4, {N})' / 8); printf('%.9g ', small_oct(x, single(0:4)));", cwd=path)


JULIA = """
using Libdl
x, scale = Float32[{x}], Float32[{scale}]
lib = dlopen(ARGS[1])
weights = zeros(UInt, 3)
status = ccall(dlsym(lib, :small_load), Cint, (Ptr{{UInt}}, Cstring), weights, ARGS[2])
dims, y, sums = Int64[{n}], zeros(Float32, 5 * {n}), zeros(Float32, {n})
bytes = ccall(dlsym(lib, :small_arena_bytes), Csize_t, (Ptr{{Int64}},), dims)
arena = Vector{{UInt8}}(undef, bytes + 64)
aligned = pointer(arena) + mod(-UInt(pointer(arena)), 64)
GC.@preserve arena x scale y sums begin
    status += ccall(dlsym(lib, :small_run), Cint,
        (UInt, Ptr{{UInt8}}, Ptr{{Int64}}, Ptr{{Ptr{{Float32}}}}, Ptr{{Ptr{{Float32}}}}, Cint),
        weights[1], aligned, dims, [pointer(x), pointer(scale)], [pointer(y), pointer(sums)], 1)
end
println(join([y; sums], " "))
exit(status)
"""


def julia(sample: Sample, work: Path) -> Iterator[str]:
    (work / "app.jl").write_text(of(JULIA, sample))
    yield run("julia", "app.jl", sample.build / "libsmall.so", sample.build / "small.safetensors",
              cwd=work)


def plant(folder: Path) -> Sample:
    """A function and its Jacobian, as CasADi wants them: doubles, and no open size."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).double()
    f = graphtool.import_model(net, (torch.zeros(4, dtype=torch.float64),))
    build = graphtool.build({"f": f, "jac": graphtool.jacobian(f)}, folder / "build", name="small",
                            target="x86-64-v3")
    x = np.arange(4) / 8
    model = runtime.load(build, 1, entry="jac")  # gives the value too
    return Sample(build, x, np.zeros(0), tuple(model.run({model.manifest.inputs[0].name: x}
                                                         ).values()))


CASADI = """
import casadi
f = casadi.external("small", "./small.so")
x = casadi.MX.sym("x", 4)
both = casadi.Function("both", [x], [f(x), casadi.jacobian(f(x), x)])
y, slope = both([{x}])
print(*y.full().ravel(), *slope.full().ravel())
"""


def casadi(sample: Sample, work: Path) -> Iterator[str]:
    """Compiled by the line of the package's README."""
    made = Path(package(sample.build, "casadi", work).path)
    yield INSTALLS
    line = re.search(r"^    (cc .*)$", (made / "README.md").read_text(), re.M)
    assert line is not None
    run(*line[1].replace("-O3", "-O1").split(), cwd=made)
    yield BUILDS
    yield run(sys.executable, "-c", of(CASADI, sample), cwd=made)


def of(text: str, sample: Sample) -> str:
    """A program with the sample's numbers in it."""
    return text.format(n=N, x=flat(sample.x), scale=flat(sample.scale))


@dataclass(frozen=True)
class Ecosystem:
    """What a person there calls it, the form of the package, the tools that are needed, how one
    asks the first of them for its version, and the steps. `sample`: a build of its own. `slow`: its
    test runs only when it is asked for."""

    name: str
    form: str
    tools: tuple[str, ...]
    steps: Callable[[Sample, Path], Iterator[str]]
    version: str = "--version"
    sample: Callable[[Path], Sample] | None = None
    slow: bool = False

    @property
    def missing(self) -> str:
        """The first tool that is not here; "" if all are. A word with a colon is a module."""
        return next((t for t in self.tools if not (
            find_spec(t[:-1]) if t.endswith(":") else shutil.which(t))), "")


ECOSYSTEMS = {e.name: e for e in (
    Ecosystem("C, one file", "single", ("cc",), single),
    Ecosystem("C++17", "single", ("g++",), cpp("c++17")),
    Ecosystem("C++20", "single", ("g++",), cpp("c++20")),
    Ecosystem("CMake", "cmake", ("cmake",), cmake),
    Ecosystem("Debian", "deb", ("dpkg-deb",), deb),
    Ecosystem("Python", "wheel", (sys.executable,), wheel),
    Ecosystem("Node", "npm", ("node", "npm", "ziglang:"), npm),
    Ecosystem("Rust", "cargo", ("cargo",), cargo),
    Ecosystem("Go", "go", ("go",), go, version="version"),
    Ecosystem("Fortran", "single", ("gfortran",), fortran),
    Ecosystem("Octave", "single", ("octave-cli", "mkoctfile"), octave, slow=True),
    Ecosystem("Julia", "the build itself", ("julia",), julia),
    Ecosystem("CasADi", "casadi", ("casadi:",), casadi, sample=plant, slow=True),
)}
