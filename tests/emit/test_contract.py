"""What the header of a build promises to C and C++: macros, statuses, loading, the example."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.emit.c import emit
from graphtool.emit.interface import MacroPrinter
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.symbolic import Symbol, dim_of, floordiv, symbol
from graphtool.target import named
from graphtool.transforms.training import Recipe, training
from tests.compilers import run_compiler
from tests.emit.samples import awkward
from tests.lower.compiling import faults, optimised
from tests.passes.pass_samples import SAMPLES, module, values

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
LANGUAGES = ["gcc -std=c99", "gcc -std=c17", "clang -std=c99", "g++ -std=c++98 -Wno-long-long",
             "g++ -std=c++20", "clang++ -std=c++17"]


def dense(x: Any) -> Any:
    return o.linear(x, values(x, 40, 24, name="w", param=True), values(x, 40))


def compiled(command: str, source: str, folder: Path, *more: str) -> Path:
    """A program of this source, compiled without a warning."""
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command.split()[0]} is not installed")
    (folder / "user.cc").write_text(source)
    language = "c++" if "++" in command else "c"
    done = subprocess.run([*command.split(), *WARNINGS, "-x", language, "user.cc", "-x", "none",
                           *more, "-o", "user"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return folder / "user"


def main(body: str, header: str = "model") -> str:
    return (f'#include <stdio.h>\n#include "{header}.h"\nint main(void)\n{{\n{body}\n'
            "return 0;\n}\n")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graphtool.build(module(dense, "f32[B,24]"), tmp_path_factory.mktemp("b") / "b")


@pytest.mark.parametrize("command", LANGUAGES)
def test_the_header_is_c_and_cpp(command: str, built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "b")
    body = """
    const int64_t dims[] = {5};
    const int64_t shape[] = MODEL_INPUT0_SHAPE(dims);
    model_weights weights;
    int status = model_load(&weights, "model.safetensors");
    printf("%d %d %d %d ", status, MODEL_INPUT0_RANK, (int)shape[0], (int)shape[1]);
    printf("%d %d %s ", (int)MODEL_OUTPUT0_COUNT(dims), (int)MODEL_OUTPUT0_BYTES(dims),
           model_status_text(MODEL_NO_FILE));
    printf("%d", (int)model_arena_bytes(dims));
    model_free(&weights);"""
    user = compiled(command, main(body), tmp_path / "b", "-L.", "-lmodel", "-Wl,-rpath,.")
    done = subprocess.run([user], cwd=user.parent, capture_output=True, text=True)
    assert done.stdout.startswith("0 2 5 24 200 800 the weights file cannot be read ")
    assert int(done.stdout.split()[-1]) % 64 == 0 and done.returncode == 0


@pytest.mark.parametrize("command", ["gcc -std=c11", "g++"])
def test_the_header_of_training_is_c_and_cpp(command: str, tmp_path: Path) -> None:
    built = build(training(module(dense, "f32[B,24]"), Recipe("mse", optimizer="adam")),
                           tmp_path / "b")
    body = """
    static float x[2 * 24], y[2 * 40], loss;
    printf("%d %d", model_step(NULL, NULL, 2, x, y, 0.1f, &loss, 1),
           model_step((char *)NULL + 8, NULL, 2, x, y, 0.1f, &loss, 1));"""
    user = compiled(command, main(body), built, "-L.", "-lmodel", "-Wl,-rpath,.")
    assert subprocess.run([user], cwd=built, capture_output=True, text=True).stdout == "-3 -4"


@pytest.mark.parametrize("what", [*SAMPLES, "awkward"])
def test_macros_of_ports_are_their_sizes(what: str, tmp_path: Path) -> None:
    """Each macro is what the manifest says, in a file that a compiler reads without a warning."""
    target = named("generic")
    model = awkward("generic", True) if what == "awkward" else optimised(SAMPLES[what], target)
    for name, text in emit(lower(model, target)).items():
        (tmp_path / name).write_text(text)
    sizes = {s.name: 5 for s in model.symbols.values()}
    lines, want = [], []
    for kind, ports in (("INPUT", model.graph.inputs), ("OUTPUT", model.graph.outputs)):
        for i, v in enumerate(ports):
            shape = interp_shape(v.type.shape, sizes)
            if shape is None:
                continue
            own = f"MODEL_{kind}{i}_"
            open_ = "(dims)" if any(not isinstance(d, int) for d in v.type.shape) else ""
            lines += [f'printf("%d %d %d\\n", {own}RANK, (int){own}COUNT{open_}, '
                      f"(int){own}BYTES{open_});"]
            count = int(np.prod(shape))
            want.append(f"{len(shape)} {count} {count * v.type.dtype.bytes}")
            if shape:
                lines += [f"{{ const int64_t s[] = {own}SHAPE{open_}; for (int i = 0; i < "
                          f'{own}RANK; i++) printf("%d ", (int)s[i]); printf("\\n"); }}']
                want.append("".join(f"{d} " for d in shape))
    dims = ", ".join(["5"] * len(sizes)) or "0"
    user = compiled("gcc", main(f"const int64_t dims[] = {{{dims}}}; (void)dims;"
                                + "\n".join(lines)), tmp_path)
    shown = subprocess.run([user], capture_output=True, text=True).stdout
    assert shown.splitlines() == want


def interp_shape(shape: tuple[Any, ...], sizes: Mapping[str, int]) -> list[int] | None:
    """The sizes as numbers; None if a run computes one of them."""
    from graphtool.symbolic import substitute
    found = [substitute(d, sizes) for d in shape]
    return found if all(isinstance(d, int) for d in found) else None  # type: ignore[return-value]


@pytest.mark.part(3)
@pytest.mark.parametrize("weights", ["file", "embed", "c"])
@pytest.mark.parametrize("target", ["native", "fat"])
def test_the_example_runs_as_a_stranger_would(weights: Any, target: str, tmp_path: Path) -> None:
    model = module(dense, "f32[B,24]")
    built = graphtool.build(model, tmp_path / "b", target=target, weights=weights, name="net")
    assert (built / "net.safetensors").exists() == (weights == "file")
    assert (built / "net_weights.bin").exists() == (weights == "embed")  # the assembler reads it
    sources = sorted(p.name for p in built.glob("*.c"))
    done = run_compiler(["gcc", "-O2", *sources, "-lm", "-o", "example"], built)
    assert done.returncode == 0, done.stderr[:2000]
    ran = subprocess.run(["./example"], cwd=built, capture_output=True, text=True)
    want = next(iter(interp.run(model, {"x0": np.zeros((1, 24), np.float32)}).values())).ravel()
    label, _, numbers = ran.stdout.partition(":")
    assert ran.returncode == 0 and label == "outputs[0]"
    np.testing.assert_allclose([float(x) for x in numbers.split()], want[:8], rtol=1e-4)


@pytest.mark.part(2)
@pytest.mark.parametrize("name", [*SAMPLES, "awkward"])
def test_each_example_compiles_without_a_warning(name: str, tmp_path: Path) -> None:
    model = awkward("generic") if name == "awkward" else optimised(SAMPLES[name], named("generic"))
    for file, text in emit(lower(model, named("generic"))).items():
        (tmp_path / file).write_text(text)
    for source in ("model_example.c", "model_load.c", "model.c"):
        for command in ("gcc", *(LANGUAGES if source != "model.c" else ())):
            no_warning(command, source, tmp_path)


def no_warning(command: str, source: str, folder: Path) -> None:
    """Compile one file as C or C++, if the compiler is there."""
    if shutil.which(command.split()[0]) is not None:
        flags = ["-Wall", "-Wextra", "-Werror"] if command == "gcc" else WARNINGS
        done = run_compiler(
            [*command.split(), *flags, "-x", "c++" if "++" in command else "c", "-c", source],
            folder)
        assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize("command", ["g++", "clang++"])
def test_the_example_runs_as_cpp(command: str, built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "b")
    source = (tmp_path / "b" / "model_example.c").read_text()
    loading = (tmp_path / "b" / "model_load.c").read_text()
    (tmp_path / "b" / "more.cc").write_text(loading)
    user = compiled(command, source, tmp_path / "b", "-x", "c++", "more.cc", "-x", "none", "-L.",
                    "-lmodel", "-Wl,-rpath,.")
    done = subprocess.run([user], cwd=user.parent, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("outputs[0]: ")


@pytest.mark.parametrize(("change", "status"), [
    (lambda p: p.unlink(), -5), (lambda p: p.write_bytes(b"12"), -6),
    (lambda p: p.write_bytes(p.read_bytes()[:-1]), -6),
    (lambda p: p.write_bytes(b"\xff" * 8 + p.read_bytes()[8:]), -6)])
def test_bad_weights_files_are_refused(change: Any, status: int, built: Path,
                                       tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "b")
    change(tmp_path / "b" / "model.safetensors")
    held = (ctypes.c_void_p * 3)(1, 1, 1)
    library = ctypes.CDLL(str(tmp_path / "b" / "libmodel.so"))
    file = os.fsencode(tmp_path / "b" / "model.safetensors")
    assert library.model_load(held, file) == status and list(held[:2]) == [None, None]
    library.model_free(held)


def test_weights_that_are_not_aligned_are_copied(built: Path, tmp_path: Path) -> None:
    raw = (built / "model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    odd = (size + 3).to_bytes(8, "little") + raw[8:8 + size] + b"   " + raw[8 + size:]
    (tmp_path / "odd.safetensors").write_bytes(odd)
    library, held = ctypes.CDLL(str(built / "libmodel.so")), (ctypes.c_void_p * 3)()
    assert library.model_load(held, os.fsencode(tmp_path / "odd.safetensors")) == 0
    at = held[0] or 0
    assert at % 64 == 0 and ctypes.string_at(at, 960) == raw[8 + size:][:960]
    library.model_free(held)
    assert held[1] is None


def test_pointers_that_are_missing_or_misaligned(built: Path) -> None:
    model = runtime.load(built)
    x = np.ones((2, 24), np.float32)
    want = model.run({"x0": x})["y0"]
    library, y = model.library, np.zeros((2, 40), np.float32)
    held, dims = (ctypes.c_void_p * 3)(), (ctypes.c_int64 * 1)(2)
    assert library.model_load(held, os.fsencode(built / "model.safetensors")) == 0
    arena = np.zeros(1 << 16, np.uint8)
    at = arena.ctypes.data + -arena.ctypes.data % 64
    ins, outs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
    none = (ctypes.c_void_p * 1)()
    good: list[Any] = [ctypes.c_void_p(held[0]), ctypes.c_void_p(at), dims, ins, outs, 1]
    assert library.model_run(*good) == 0 and faults({"y0": y}, {"y0": want}) == []
    for i, bad in ((0, None), (1, None) if "!arena" in (built / "model.c").read_text() else
                   (0, None), (2, None), (3, None), (4, None), (3, none), (4, none)):
        assert library.model_run(*[*good[:i], bad, *good[i + 1:]]) == -3
    odd = ctypes.c_void_p((held[0] or 0) + 4)
    assert library.model_run(odd, *good[1:]) == -4
    assert library.model_run(*good[:2], (ctypes.c_int64 * 1)(9), *good[3:]) == -1


def unbounded() -> Module:
    """An open size without a bound, whose square is in the arena."""
    def fn(x: Any) -> Any:
        y = o.matmul(x, o.transpose(x, perm=(1, 0)))
        return o.reduce_sum(y, axes=(0,)), o.reduce_max(y, axes=(1,))
    n = Symbol("N", 1, None)
    graph = trace(fn, [TensorType(dtypes.float32, (symbol("N", 1, None), 24))], ["x"])
    return Module(graph, ("a", "b"), {"N": n})


def test_an_arena_never_wraps(tmp_path: Path) -> None:
    model = runtime.load(graphtool.build(unbounded(), tmp_path / "b"))
    size = model.library.model_arena_bytes
    size.restype = ctypes.c_size_t

    def room(n: int) -> int:
        return int(size((ctypes.c_int64 * 1)(n)))
    assert room(3) % 64 == 0 and 0 < room(3) < room(1000)
    assert [room(n) for n in (0, -1, 2**31, 2**32, 2**62, 2**63 - 1)] == [0] * 6
    assert size(None) == 0


def test_the_size_of_a_constant_arena_has_a_range_of_dims_too(tmp_path: Path) -> None:
    """The header says of it: 0 if a dim is out of its range."""
    n = symbol("N", 1, 64)
    graph = trace(o.relu, [TensorType(dtypes.float32, (n, 3))], ["x"])
    built = graphtool.build(Module(graph, ("y",), {"N": Symbol("N", 1, 64)}),
                            tmp_path / "b")
    assert "return 64;" in (built / "model.c").read_text()
    size = runtime.load(built).library.model_arena_bytes
    size.restype = ctypes.c_size_t
    assert [size((ctypes.c_int64 * 1)(v)) for v in (0, -1, 65, 2**40, 1, 64)] == [0] * 4 + [64] * 2
    assert size(None) == 0


def test_a_size_of_0_hides_no_overflow(tmp_path: Path) -> None:
    def fn(x: Any) -> Any:
        y = o.softmax(o.slice(x, start=(0, 0), limit=x.shape, strides=(1, 2)), axis=1)
        return o.matmul(y, o.transpose(y, perm=(1, 0)))
    n, k = symbol("N", 0, None), symbol("K", 1, None)
    model = Module(trace(fn, [TensorType(dtypes.float32, (n, k))], ["x"]), ("y",),
                   {"N": Symbol("N", 0, None), "K": Symbol("K", 1, None)})
    library = runtime.load(graphtool.build(model, tmp_path / "b")).library
    library.model_arena_bytes.restype = ctypes.c_size_t
    for sizes in ((2**63 - 1, 0), (0, 2**63 - 1)):  # of K and N, whichever is first
        assert library.model_arena_bytes((ctypes.c_int64 * 2)(*sizes)) == 0


def test_a_run_with_sizes_too_large_fails(tmp_path: Path) -> None:
    library = runtime.load(graphtool.build(unbounded(), tmp_path / "b")).library
    held = (ctypes.c_void_p * 2)(64, 64)
    for n in (0, -1, 2**31, 2**62, 2**63 - 1):
        assert library.model_run(None, ctypes.c_void_p(64), (ctypes.c_int64 * 1)(n), held, held,
                                 1) == -1


def test_only_a_port_without_elements_may_be_null(tmp_path: Path) -> None:
    """Of 0 to 9 rows, and as many positions as the run finds: NULL only if there are none."""
    def fn(x: Any) -> Any:
        return o.relu(x), o.nonzero(o.gt(x, 0.0), size=symbol("found", 0, 27))
    graph = trace(fn, [TensorType(dtypes.float32, (symbol("N", 0, 9), 3))], ["x"])
    model = Module(graph, ("y", "at"), {"N": Symbol("N", 0, 9)})
    library = runtime.load(graphtool.build(model, tmp_path / "b")).library
    held = (ctypes.c_void_p * 3)()
    assert library.model_load(held, os.fsencode(tmp_path / "b" / "model.safetensors")) == 0
    memory = np.zeros(1 << 16, np.uint8)
    at = memory.ctypes.data + -memory.ctypes.data % 64
    spare = (np.zeros(1 << 12), np.zeros(1 << 12), np.zeros(1 << 12))

    def status(rows: int, *null: int) -> int:
        x, y, z = (None if i in null else a.ctypes.data for i, a in enumerate(spare))
        return int(library.model_run(ctypes.c_void_p(held[0]), ctypes.c_void_p(at),
                                     (ctypes.c_int64 * 2)(rows), (ctypes.c_void_p * 1)(x),
                                     (ctypes.c_void_p * 2)(y, z), 1))
    assert [status(2, i) for i in range(3)] == [-3] * 3
    assert status(2) == 0 and status(0, 0, 1, 2) == 0


def test_macros_print_the_value_of_a_dim_with_a_step() -> None:
    dims = Symbol("H", 4, None, None, 4), Symbol("W", 1, None, None, 2, 1), Symbol("N", 0, None)
    h, w, n = map(dim_of, dims)
    printer = MacroPrinter(Program("model", dims, (), (), (), (), ()))
    texts = {h: "(dims)[0]", h * w * n: "(dims)[0] * (dims)[2] * (dims)[1]",
             w + 1: "(dims)[1] + 1", floordiv(h, 2) * 3: "((dims)[0] / 2) * 3",
             floordiv(w, 2): "(((dims)[1] - 1) / 2)", h * h * 2 - n: "(dims)[0] * (dims)[0] * 2"
             " - (dims)[2]"}
    assert {d: printer.index(d) for d in texts} == texts
