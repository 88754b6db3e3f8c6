"""Files: external data inside and outside the folder, foreign and damaged bytes, odd tensors."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from graphtool import interp
from graphtool.errors import GraphtoolError, InputError
from graphtool.importers.onnx import import_onnx
from tests.importers.onnx.build import model, node, random
from tests.importers.onnx.test_driver import loop_body

W = random(3, 4)


def external(location: str, offset: int | str = 0, length: int | str = W.nbytes,
             dims: tuple[int, ...] = (3, 4)) -> bytes:
    """y = x·w with w in another file."""
    proto = model(["y = MatMul(x, w)"], ["x f32 2 3"], ["y f32 2 4"])
    w = proto.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=dims,
                                    data_location=TensorProto.EXTERNAL)
    for key, text in (("location", location), ("offset", str(offset)), ("length", str(length))):
        w.external_data.add(key=key, value=text)
    return bytes(proto.SerializeToString())


def product(path: Path) -> Any:
    return interp.run(import_onnx(path), {"x": np.ones((2, 3), np.float32)})["y"]


def test_external_data_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"pad!" + W.tobytes())
    (tmp_path / "m.onnx").write_bytes(external("data/w.bin", 4))
    np.testing.assert_allclose(product(tmp_path / "m.onnx"), np.ones((2, 3)) @ W, rtol=1e-6)


def test_the_layout_of_the_hugging_face_cache(tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "snapshots" / "abc" / "onnx", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "1").write_bytes(external("model.onnx_data"))
    (blobs / "2").write_bytes(W.tobytes())
    for name, blob in (("model.onnx", "1"), ("model.onnx_data", "2")):
        os.symlink(f"../../../blobs/{blob}", snapshot / name)
    np.testing.assert_allclose(product(snapshot / "model.onnx"), np.ones((2, 3)) @ W, rtol=1e-6)


@pytest.mark.parametrize("location, code", [
    ("/etc/hostname", "GT1007"), ("../secret", "GT1007"), ("a/../../secret", "GT1007"),
    ("C:\\secret", "GT1007"), ("..\\secret", "GT1007"), ("", "GT1007"), ("link", "GT1007"),
    ("linked/secret", "GT1007"), ("gone", "GT1009"), ("folder", "GT1009"), ("loop", "GT1009")])
def test_external_data_elsewhere_is_refused(tmp_path: Path, location: str, code: str) -> None:
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(W.tobytes())
    (home / "link").symlink_to("../secret")
    (home / "linked").symlink_to("..")
    (home / "loop").symlink_to("loop")
    (home / "m.onnx").write_bytes(external(location))
    with pytest.raises(InputError) as caught:
        import_onnx(home / "m.onnx")
    assert caught.value.code == code


@pytest.mark.parametrize("more, code", [
    ({"offset": 4}, "GT1008"), ({"offset": "-4"}, "GT1008"), ({"offset": 1 << 62}, "GT1008"),
    ({"offset": "1e3"}, "GT1008"), ({"length": 8}, "GT1005"), ({"dims": (3, -4)}, "GT1005"),
    ({"dims": (1 << 40, 1 << 40)}, "GT1005")])
def test_ranges_outside_the_file_are_refused(tmp_path: Path, more: dict[str, Any],
                                             code: str) -> None:
    (tmp_path / "w").write_bytes(W.tobytes())
    (tmp_path / "m.onnx").write_bytes(external("w", **more))
    with pytest.raises(InputError) as caught:
        import_onnx(tmp_path / "m.onnx")
    assert caught.value.code == code


@pytest.mark.parametrize("data, code", [
    (b"", "GT1002"), (b"not a model", "GT1001"), (b"\x80\x05pickle", "GT1001"),
    (b"\0" * 64, "GT1001"), (b"PK\3\4" + b"\0" * 60, "GT1001"), (b"{}", "GT1001")])
def test_foreign_bytes(tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(InputError) as caught:
        import_onnx(tmp_path / "m.onnx")
    assert caught.value.code == code and "m.onnx" in caught.value.where


def test_a_missing_file() -> None:
    with pytest.raises(InputError, match="cannot read"):
        import_onnx(Path("nowhere.onnx"))


def raw(dims: list[int], data: bytes, kind: int = TensorProto.FLOAT) -> bytes:
    proto = model(["y = Identity(w)"], [], ["y f32 ?"])
    proto.graph.initializer.add(name="w", data_type=kind, dims=dims, raw_data=data)
    return bytes(proto.SerializeToString())


@pytest.mark.parametrize("dims, size", [([3], 8), ([-1], 4), ([1 << 62, 4], 4), ([0], 4)])
def test_initializers_that_do_not_fit_their_dims(tmp_path: Path, dims: list[int],
                                                 size: int) -> None:
    (tmp_path / "m.onnx").write_bytes(raw(dims, b"\0" * size))
    with pytest.raises(InputError) as caught:
        import_onnx(tmp_path / "m.onnx")
    assert caught.value.code == "GT1005"


@pytest.mark.parametrize("dims, size", [([], 4), ([0], 0), ([2, 0, 3], 0)])
def test_scalars_and_empty_tensors(tmp_path: Path, dims: list[int], size: int) -> None:
    (tmp_path / "m.onnx").write_bytes(raw(dims, b"\0" * size))
    assert interp.run(import_onnx(tmp_path / "m.onnx"), {})["y"].shape == tuple(dims)


def test_four_bit_weights_are_packed_in_the_file(tmp_path: Path) -> None:
    proto = model([node("y = DequantizeLinear(w, s)", axis=0)], [], ["y f32 4"],
                  {"s": np.float32(1)})
    proto.graph.initializer.add(name="w", data_type=TensorProto.INT4, dims=[4],
                                raw_data=bytes([0x71, 0x8F]))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert interp.run(import_onnx(tmp_path / "m.onnx"), {})["y"].tolist() == [1, 7, -1, -8]


def test_sparse_initializers() -> None:
    proto = model(["y = Add(x, w)"], ["x f32 2 2"], ["y f32 2 2"])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(
        helper.make_tensor("w", 1, [1], [5.0]), helper.make_tensor("at", 7, [1], [3]), [2, 2]))
    from tests.importers.onnx.build import evaluate
    assert evaluate(proto, {"x": np.zeros((2, 2), np.float32)})[0].tolist() == [[0, 0], [0, 5]]


# ---- damage ------------------------------------------------------------------------------------

def victim() -> bytes:
    nodes = [node("s = Shape(x)"), node("f = Reshape(x, s)"), node("c = Conv(f, w)", pads=[1] * 4),
             node("p = MaxPool(c)", kernel_shape=[2, 2]), node("q = Softmax(p)", axis=-1),
             node("z = ReduceMean(q, ax)"), node("l, all = Loop(n, yes, zero)", body=loop_body())]
    nodes[-1].attribute[0].g.node[1].input[1] = "zero"
    weights = {"w": random(2, 1, 3, 3), "ax": np.array([2, 3]), "n": np.array(2),
               "yes": np.array(True), "zero": np.zeros(2, np.float32)}
    proto = model(nodes, ["x f32 N 1 4 4"], ["z f32 N 2 1 1", "l f32 2"], weights)
    return bytes(proto.SerializeToString())


def survives(data: bytes, path: Path) -> None:
    """The model is imported, or refused with a code; nothing else happens."""
    path.write_bytes(data)
    try:
        import_onnx(path)
    except GraphtoolError as error:
        assert error.code.startswith("GT") and error.exit_code in (2, 3, 4)


def test_every_truncation(tmp_path: Path) -> None:
    data = victim()
    for n in range(len(data)):
        survives(data[:n], tmp_path / "m.onnx")


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes(tmp_path: Path, seed: int) -> None:
    rng, data = np.random.default_rng(seed), victim()
    for _ in range(150):
        broken = bytearray(data)
        for at in rng.integers(0, len(data), rng.integers(1, 4)):
            broken[at] = rng.integers(0, 256)
        survives(bytes(broken), tmp_path / "m.onnx")
