"""Bad command lines and bad files: one coded error, the documented exit code, no traceback."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from graphtool.cli import faults
from graphtool.errors import InternalError
from tests.cli.conftest import DIGITS, Cli

G = "{}/digits.graph.json"
CASES = [  # exit code, error code, command line
    (2, "GT3001", "bogus"),
    (2, "GT3001", "show"),
    (2, "GT3001", "show a b"),
    (2, "GT3001", f"show {G} --no-such"),
    (2, "GT3001", f"eval {G} --seed x"),
    (2, "GT3001", "bench {}/empty --threads 0"),
    (2, "GT0603", f"grad {G} --loss mse --optimizer sgd{{{{momentum=nan}}}}"),
    (2, "GT0624", f"grad {G} --loss mse --lr 0.1"),
    (2, "GT0624", f"grad {G} --loss mse --group *{{{{weight_decay=0}}}}"),
    (2, "GT3011", f"eval {G} --random --dim batch"),
    (2, "GT3011", f"eval {G} --random --dim rows=3"),
    (2, "GT3012", f"eval {G}"),
    (2, "GT3013", f"eval {G} --input image"),
    (2, "GT3015", f"eval {G} --input image=1x2"),
    (2, "GT3015", f"eval {G} --input image=1x1x8x8xf32=word"),
    (3, "GT0512", f"eval {G} --input nope=1"),
    (3, "GT0301", f"eval {G} --input image=1x1x8x8xf99=1"),
    (3, "GT0301", f"eval {G} --random --dtype f99"),
    (2, "GT3016", f"show {G} --category cheap"),
    (2, "GT3017", f"draw {G} --format png"),
    (2, "GT3017", f"draw {G} -o {{T}}/picture.png"),
    (2, "GT3017", f"diff {G} {G} --format pdf"),
    (2, "GT3017", f"export {G} --format tflite"),
    (2, "GT3017", f"export {G} --external-data"),
    (2, "GT3017", f"export {G} --external-data --format stablehlo"),
    (2, "GT3017", f"export {G} --flat"),
    (2, "GT3017", f"export {G} --no-aliases"),
    (2, "GT3017", f"export {G} --weights arguments -o {{T}}/m.onnx"),
    (2, "GT3017", f"export {G} --weights elsewhere --format stablehlo"),
    (2, "GT3017", f"export {G} --weights arguments --format stablehlo"),
    (2, "GT3017", f"show {G} --as onnx"),
    (3, "GT0330", f"export {G} -o {{T}}/no/such/folder/m.onnx"),
    (2, "GT3018", "support {}/in.npz"),
    (2, "GT3019", "explain GT9999"),
    (2, "GT3020", f"import {DIGITS} --dynamic batch=4..2"),
    (3, "GT0311", f"import {DIGITS} --dynamic batch=x"),
    (2, "GT3020", f"import {DIGITS} --dynamic batch=..x"),
    (2, "GT3020", f"import {DIGITS} --dynamic batch=1..8=2"),
    (2, "GT3021", f"import {DIGITS} --capture eager"),
    (2, "GT3022", f"opt {G} --passes dce --print-after fold"),
    (2, "GT3042", f"check {G} {{}}/in.npz"),
    (2, "GT0601", f"opt {G} --passes fold,bogus"),
    (2, "GT0602", f"opt {G} --passes dce{{{{x=1}}}}"),
    (2, "GT0604", f"opt {G} --passes decompose,freeze"),
    (2, "GT0608", f"opt {G} --passes ,,"),
    (2, "GT1110", "import {}/in.npz"),
    (2, "GT2101", f"lower {G} --march z80"),
    (3, "GT0332", "show {}/none.graph.json"),
    (3, "GT0338", "show {}/empty"),
    (3, "GT0338", "build {}/empty -o {}/out"),
    (3, "GT0339", f"run {G} --random"),
    (3, "GT0339", f"bench {DIGITS}"),
    (3, "GT0339", f"train {G} --data {{}}/in.npz"),
    (2, "GT3024", f"import {G} --limit nodes=9"),
    (2, "GT3024", f"build {G} -o {{}}/out --dynamic batch=1..4"),
    (2, "GT3024", f"emit {G} -o {{}}/out --capture export"),
    (2, "GT3024", "emit {}/bad.program.json -o {}/out --inputs x:f32[4]"),
    (2, "GT3020", f"build {DIGITS} -o {{}}/out --dynamic batch=4..2"),
    (2, "GT3021", f"emit {DIGITS} -o {{}}/out --capture eager"),
    (3, "GT1022", f"build {DIGITS} -o {{}}/out --limit nodes=3"),
    (3, "GT0332", "eval " + G + " --inputs {}/none.npz"),
    (3, "GT0332", "import {}/none.onnx"),
    (3, "GT0332", "import {}/empty.pt2"),
    (3, "GT0331", "show {}/cut.graph.json"),
    (3, "GT0340", "show {}/alien.json"),
    (3, "GT0334", "show {}/old.graph.json"),
    (3, "GT0401", "show {}/unknown.graph.json"),
    (3, "GT0349", "show {}/cycle.graph.json"),
    (3, "GT0320", "opt {}/lost.graph.json"),
    (3, "GT0355", "show {}/type.graph.json"),
    (3, "GT0345", "show {}/negative.graph.json"),
    (3, "GT0311", "show {}/dim.graph.json"),
    (3, "GT0412", "show {}/stride.graph.json"),
    (3, "GT0350", "show {}/attribute.graph.json"),
    (3, "GT0405", "show {}/operands.graph.json"),
    (3, "GT0356", "show {}/range.graph.json"),
    (3, "GT0335", "eval " + G + " --inputs {}/bad.npz"),
    (3, "GT0330", f"opt {G} -o {{}}/no/such/folder/x.graph.json"),
    (3, "GT0330", f"opt {G} --dump-dir {{}}/in.npz"),
    (3, "GT0330", f"opt {G} -o ."),
    (3, "GT0333", f"eval {G} --random --dim batch=99999999999"),
    (3, "GT0333", f"eval {G} --random --dim batch=9999999999999999999999"),
    (2, "GT3001", f"eval {G} --random --seed -1"),
    (2, "GT3023", f"eval {G} --random --dtype int8"),
    (2, "GT3011", f"opt {G} --check --dim rows=3"),
    (2, "GT2110", f"build {G} -o {{}}/out --name gemm"),
    (2, "GT2110", f"build {G} -o {{}}/out --name {'x' * 300}"),
    (2, "GT2110", f"emit {G} -o {{}}/out --name ../x"),
    (2, "GT2110", f"lower {G} --name 1x"),
    (2, "GT0608", f"grad {G} --loss mse{{{{"),
    (2, "GT0616", f"grad {G} --loss zz"),
    (2, "GT0602", f"grad {G} --loss mse --optimizer adam{{{{beta=1}}}}"),
    (3, "GT0401", "ops nosuchop"),
    (3, "GT0512", "eval " + G + " --inputs {}/misnamed.npz"),
    (3, "GT0511", f"eval {G} --inputs {{}}/hollow.npz"),
    (3, "GT0512", "eval " + G + " --inputs {}/extra.npz"),
    (3, "GT0513", "eval " + G + " --inputs {}/double.npz"),
    (3, "GT0514", "eval " + G + " --inputs {}/shape.npz"),
    (2, "GT3011", f"eval {G} --random --dim batch=-1"),
    (3, "", "import {}/bad.onnx"),
    (3, "", "support {}/bad.onnx"),
    (3, "", "build {}/bad.program.json -o {}/out"),
    (3, "", "run {}/empty --random"),
    (3, "", "bench {}/none"),
    (5, "GT2120", f"build {DIGITS} -o {{}}/out --cc /no/such/compiler"),
]


@pytest.mark.compiled
@pytest.mark.parametrize(("code", "error", "line"), CASES, ids=[c[2] for c in CASES])
def test_one_coded_error(code: int, error: str, line: str, gt: Cli, folder: Path) -> None:
    result = gt(*line.replace("{{", "\1").replace("}}", "\2").replace("{}", str(folder)).replace(
        "\1", "{").replace("\2", "}").split())
    assert (result.code, result.out) == (code, "")
    assert re.match(rf"error\[{error or 'GT....'}\]: \S", result.err)
    assert not (folder / "out").exists()


def test_a_stdin_that_is_no_graph(gt: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{]")))
    result = gt("show", "-")
    assert result.code == 3 and "GT0331" in result.err


@pytest.mark.compiled
def test_what_nobody_foresaw_leaves_a_reproducer(gt: Cli, monkeypatch: pytest.MonkeyPatch,
                                                 tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault\nin two lines")
    monkeypatch.setattr("graphtool.cli.sources.read", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (source := tmp_path / "net.py").write_text("")
    result = gt("show", f"{source}:model")
    made = next(p for p in tmp_path.iterdir() if p.is_dir())
    assert result.code == 70 and "ZeroDivisionError: a fault\n" in result.err
    assert str(made) in result.err
    assert {p.name for p in made.iterdir()} == {
        "argv.json", "versions.json", "traceback.txt", "net.py", "README.txt"}


@pytest.mark.compiled
@pytest.mark.parametrize(("fault", "code"), [
    (KeyboardInterrupt(), 130), (BrokenPipeError(), 0), (RecursionError(), 70),
    (MemoryError(), 3), (InternalError("GT7001", "declared twice"), 70), (SystemExit(3), 3)])
def test_exit_codes(fault: BaseException, code: int, gt: Cli, monkeypatch: pytest.MonkeyPatch,
                    tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise fault
    monkeypatch.setattr("graphtool.cli.sources.read", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(faults, "_quiet_stdout", lambda: None)
    assert gt("show", "x.json").code == code


@pytest.mark.parametrize(("option", "words"), [
    (("--seed", "x"), "'x' is not a whole number"), (("--rtol", "x"), "'x' is not a number")])
def test_a_bad_number_is_said_in_plain_words(option: tuple[str, str], words: str, gt: Cli) -> None:
    assert words in gt("opt", "m.graph.json", "--check", *option).err
