"""Names of models in C: none that a compiler, a file system or a header of ours would object to."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.emit.c import emit
from graphtool.emit.names import c_name, check_name
from graphtool.errors import InputError, UsageError
from graphtool.ir.serial import loads
from graphtool.kernels import headers
from graphtool.loops.verify_kernel import LOCAL, local
from graphtool.lower import lower
from graphtool.target import named

KEYWORDS = ("t", "x", "acc", "count", "unix", "linux", "asm", "typeof", "errno", "stdin", "main",
            "class", "template", "this", "new", "arena", "weights", "status", "inputs", "outputs")


@pytest.mark.parametrize("name", ["", "1x", "a-b", "é", "../x", "x" * 101, "gemm", "main", "train"])
def test_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"cannot name|letters|header"):
        check_name(name)


@pytest.mark.parametrize(("source", "name"), [
    ("-", "model"), ("a/net.v2.onnx", "net"), ("3d.onnx", "m_3d"), ("été.onnx", "t"),
    ("gemm.onnx", "m_gemm"), ("mlp.py:model", "mlp"), ("x" * 200, "x" * 100), ("日本", "model")])
def test_made_of_a_file(source: str, name: str) -> None:
    assert c_name(source) == name
    check_name(name)


def words_of(text: str) -> set[str]:
    """The identifiers of a C text, without those in comments and strings."""
    return set(re.findall(r"\b[A-Za-z_]\w*\b", re.sub(r'/\*.*?\*/|"[^"\n]*"', "", text,
                                                      flags=re.DOTALL)))


HEADERS = {name: words_of(headers.text(name) or "") for name in headers.names()}
TEMPLATES = sorted(name for name, words in HEADERS.items() if "GT_PARAMS" in words)
LOCALS = sorted({w for name in TEMPLATES for w in HEADERS[name] if re.fullmatch("[a-z]{1,9}", w)}
                | set(KEYWORDS))


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_header_has_the_names_of_a_kernel(name: str) -> None:
    """A kernel's parameters reach into the functions of a header, where they must mean the same."""
    assert not [w for w in HEADERS[name] if LOCAL.fullmatch(w)]


@pytest.mark.parametrize("name", LOCALS)
def test_no_kernel_has_the_names_of_a_header(name: str) -> None:
    with pytest.raises(InputError) as error:
        local(name, "parameter")
    assert error.value.code == "GT0370"


def test_inputs_outputs_and_sizes_may_have_any_name(tmp_path: Path) -> None:
    """What a graph calls its values is no identifier in C but within macros of its header."""
    module = loads("\n".join([
        *(f"dim {w}: 1..8" for w in LOCALS), *(f'input "{w}": f32[{w},3]' for w in LOCALS),
        *(f'"o.{w}": f32[3,{w}] = transpose("{w}", perm=(1, 0))' for w in LOCALS),
        "return " + ", ".join(f'"o.{w}" as "{w}"' for w in LOCALS)]))
    for file, text in emit(lower(module, named("x86-64"), name="model")).items():
        (tmp_path / file).write_text(text)
    done = subprocess.run(["gcc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           *(str(p) for p in tmp_path.glob("*.c"))],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
