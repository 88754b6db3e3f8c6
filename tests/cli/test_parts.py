"""A model that takes a sequence and an optional, from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import helper

from graphtool.io import npz
from tests.cli.conftest import Cli
from tests.importers.onnx.build import model


def saved(folder: Path) -> str:
    proto = model(["n = SequenceLength(s)", "e = OptionalHasElement(o)", "t = Identity(s)"],
                  ["x f32 2"], ["n i64", "e bool"])
    proto.graph.input.append(helper.make_tensor_sequence_value_info("s", 1, None))
    proto.graph.input.append(helper.make_value_info("o", helper.make_optional_type_proto(
        helper.make_tensor_type_proto(1, [4]))))
    proto.graph.output.append(helper.make_tensor_sequence_value_info("t", 1, None))
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return str(folder / "m.onnx")


def test_from_the_command_line(gt: Cli, tmp_path: Path) -> None:
    graph, out = str(tmp_path / "m.graph.json"), tmp_path / "o.npz"
    assert gt("import", saved(tmp_path), "--no-check", "-o", graph, "--inputs",
              "s:(f32[4],f32[2])", "--inputs", "o:none").code == 0
    assert gt("eval", graph, "--random", "-o", out).code == 0
    found = npz.load(out)
    assert set(found) == {"n", "e", "t.0", "t.1"} and found["n"] == 2 and not found["e"]
    assert np.shape(found["t.1"]) == (2,)


def test_the_errors_say_how(gt: Cli, tmp_path: Path) -> None:
    bare = gt("eval", saved(tmp_path), "--random")
    assert bare.code == 4 and "--inputs 's:(f32[4],f32[5])'" in bare.err
    wrong = gt("import", saved(tmp_path), "--inputs", "x:f32[2]")
    assert wrong.code == 2 and "GT1032" in wrong.err
