"""Names of models in C: none that a compiler, a file system or a header of ours would object to."""

from __future__ import annotations

import pytest

from graphtool.emit.names import c_name, check_name
from graphtool.errors import UsageError


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
