"""`.pt2` archives: equal to the live import, and safe against edited ones."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

from graphtool import interp
from graphtool.errors import GraphtoolError, InputError
from graphtool.importers.torch import import_torch, read_pt2
from graphtool.importers.torch.driver import pt2_live
from graphtool.importers.torch.driver.live import array
from graphtool.importers.torch.torchscript.archive import kind_of


class Model(nn.Module):
    """Tied weights, a mutated buffer, a constant, a dict and a list as results."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("shift", torch.ones(4), persistent=False)
        self.norm = nn.BatchNorm1d(4)
        self.scale = torch.full((4,), 2.0)

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        self.count.add_(1)
        y = self.norm(self.a(x) + self.b(x)) * self.scale + self.shift
        return {"y": y[1:], "parts": [y.sum(), torch.cat([y, y]).view(-1, 2)]}


@contextmanager
def quiet():
    with warnings.catch_warnings():  # torch's own, about its own pytrees
        warnings.simplefilter("ignore")
        yield


def saved(path, model, *args):
    with quiet():
        torch.export.save(torch.export.export(model, args, strict=False), path)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    batch = torch.export.Dim("batch", min=3, max=64)
    with quiet():
        program = torch.export.export(Model().eval(), (torch.randn(5, 4),),
                                      dynamic_shapes=({0: batch},), strict=False)
        torch.export.save(program.run_decompositions(), path)
    return path


def test_equals_torch(archive):
    module, x = read_pt2(archive), torch.randn(7, 4)
    out = interp.run(module, {"x": x.numpy(), "count": np.float32(3)})
    want = Model().eval()(x)
    assert list(out) == ["y", "parts.0", "parts.1", "count"]
    for got, w in zip(out.values(), (want["y"], *want["parts"], torch.tensor(4.0)), strict=True):
        np.testing.assert_allclose(got, w.detach().numpy(), rtol=1e-5, atol=1e-5)


def test_symbols_state_and_ties(archive):
    module = read_pt2(archive)
    (s,), = [module.symbols.values()]
    assert (s.lo, s.hi) == (3, 64)
    assert module.donations == ((3, 1),)
    params = [n.outputs[0].hint for n in module.graph.nodes
              if n.op.name == "constant" and n.attrs["param"]]
    assert sorted(params) == ["a.bias", "a.weight", "b.bias", "norm.bias", "norm.weight"]


def test_undecomposed_archive(tmp_path):
    """What `torch.export.save(torch.export.export(...))` writes, before any decomposition."""
    path, x = tmp_path / "m.pt2", torch.randn(2, 4)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Softmax(-1)).eval()
    saved(path, model, x)
    (out,) = interp.run(read_pt2(path), {"input": x.numpy()}).values()
    np.testing.assert_allclose(out, model(x).detach().numpy(), atol=1e-6)


class AsCaptured(nn.Module):
    """What torch takes apart only when asked: in-place work on views, composites, a branch and a
    loop, a complex buffer, tied weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight
        self.register_buffer("rotation", torch.polar(torch.ones(2), torch.arange(2.0)))
        self.register_buffer("kept", torch.zeros(3, 4))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        self.kept[0] += x[0]
        y = torch.relu_(self.a(x) + self.b(x))
        y[:, ::2] += 1
        y = torch.einsum("ij,kj->ik", y, self.kept)
        z = torch.view_as_real(torch.view_as_complex(x.reshape(-1, 2, 2)) * self.rotation)
        w = torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))
        for _ in range(2):
            w = torch._higher_order_ops.map(lambda row, m: row * m.sum(), w, self.kept)
        return {"y": y, "z": z, "w": w}


@pytest.mark.parametrize("strict", [False, True])
def test_an_archive_as_captured(tmp_path, strict):
    """torch's own decompositions serve it, after the archive was vetted."""
    path, x = tmp_path / "m.pt2", torch.randn(3, 4)
    batch = torch.export.Dim("batch", min=2, max=9)
    with quiet():
        torch.export.save(torch.export.export(AsCaptured(), (x,), strict=strict,
                                              dynamic_shapes=({0: batch},)), path)
    module, more = read_pt2(path), torch.randn(5, 4)
    assert [n for n in module.output_names] == ["y", "z", "w", "kept"]
    want, model = [], AsCaptured()
    with torch.no_grad():
        want = [*model(more).values(), model.kept]
    got = interp.run(module, {"x": more.numpy(), "kept": np.zeros((3, 4), np.float32)})
    for a, b in zip(got.values(), want, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", [
    "__import__('os').mkdir('owned')", "s0.__class__", "Symbol('s0').func", "Integer('exit()')",
    "(lambda: s0)()", "open", "sympify('s0')"])
def test_what_sympy_would_evaluate_is_vetted(text):
    assert not pt2_live._harmless(("expr_str", text))


@pytest.mark.parametrize("text", [
    "torch.hub.load", "torch.ops.load_library", "torch.load", "os.system", "_operator.attrgetter",
    "_operator.methodcaller", "torch.ops.aten.add.__class__", "torch.ops.aten.add.Tensor.x",
    "#x:y"])
def test_what_torch_would_look_up_is_vetted(text):
    assert not pt2_live._harmless(("target", text))


def test_places_are_kept_and_no_path_is(archive):
    module = read_pt2(archive)
    assert module.locations["a"].at.startswith("test_pt2.py:")
    assert module.locations["a"].at.endswith("Model.forward")
    assert not any("/" in v.at for v in module.locations.values())


def test_needs_no_torch(archive):
    code = ("import sys; sys.modules['torch'] = None\n"
            "from graphtool.importers import import_source\n"
            f"print(len(import_source({str(archive)!r}).graph.nodes))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) > 5, done.stderr


# ---- edited archives ---------------------------------------------------------------------------

MODEL, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"


def edited(source, target, change):
    """A copy of the archive with `change(name, bytes) → bytes | None | dict of members`."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            name = info.filename.partition("/")[2]
            data = change(name, old.read(info))
            if data is not None:
                new.writestr(info.filename, data)
    return target


def json_edit(member, change):
    def apply(name, data):
        if name != member:
            return data
        tree = json.loads(data)
        change(tree)
        return json.dumps(tree)
    return apply


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def graph_of(tree):
    return tree["graph_module"]["graph"]


def set_size(tree, text):
    graph_of(tree)["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": text, "hint": None}}


def each_weight(tree, **fields):
    for row in tree["config"].values():
        row.update(fields)


def meta(tree, **fields):
    next(iter(tree["config"].values()))["tensor_meta"].update(fields)


def node(tree, **fields):
    graph_of(tree)["nodes"][0].update(fields)


SHELL = "__import__('os').mkdir('owned')"
ATTACKS = {
    "weights as a pickle": (WEIGHTS, lambda t: each_weight(t, use_pickle=True), "GT1205"),
    "no tensor meta": (WEIGHTS, lambda t: each_weight(t, tensor_meta=None), "GT1205"),
    "code as a size": (MODEL, lambda t: set_size(t, SHELL), "GT1210"),
    "attribute as a size": (MODEL, lambda t: set_size(t, "x.__class__"), "GT1210"),
    "lambda as a size": (MODEL, lambda t: set_size(t, "(lambda: 1)()"), "GT1210"),
    "subscript as a size": (MODEL, lambda t: set_size(t, "().__class__.__mro__[1]"), "GT1210"),
    "f-string as a size": (MODEL, lambda t: set_size(t, "f'{exit()}'"), "GT1210"),
    "huge power as a size": (MODEL, lambda t: set_size(t, "Pow(Integer(9), Integer(99999999))"),
                             "GT1210"),
    "deep size": (MODEL, lambda t: set_size(t, "(" * 5000 + "1" + ")" * 5000), "GT1210"),
    "long size": (MODEL, lambda t: set_size(t, "1+" * 50000 + "1"), "GT1210"),
    "size that is no text": (MODEL, lambda t: set_size(t, 7), "GT1210"),
    "foreign op": (MODEL, lambda t: node(t, target="torch.ops.mylib.system.default"), "GT1101"),
    "Python function": (MODEL, lambda t: node(t, target="os.system"), "GT1101"),
    "operator": (MODEL, lambda t: node(t, target="_operator.attrgetter"), "GT1101"),
    "weight outside": (WEIGHTS, lambda t: each_weight(t, path_name="../../etc/passwd"), "GT1203"),
    "absolute weight": (WEIGHTS, lambda t: each_weight(t, path_name="/etc/passwd"), "GT1203"),
    "missing weight": (WEIGHTS, lambda t: each_weight(t, path_name="weight_99"), "GT1202"),
    "strides beyond": (WEIGHTS, lambda t: meta(t, strides=[{"as_int": 4000}, {"as_int": 1}]),
                       "GT1203"),
    "negative stride": (WEIGHTS, lambda t: meta(t, strides=[{"as_int": -4}, {"as_int": 1}]),
                        "GT1202"),
    "offset beyond": (WEIGHTS, lambda t: meta(t, storage_offset={"as_int": 1 << 40}), "GT1203"),
    "huge shape": (WEIGHTS, lambda t: meta(t, sizes=[{"as_int": 1 << 46}, {"as_int": 1 << 46}]),
                   "GT1203"),
    "wrong shape": (WEIGHTS, lambda t: meta(t, sizes=[{"as_int": 2}, {"as_int": 4}]), "GT1202"),
    "unknown type": (WEIGHTS, lambda t: meta(t, dtype=99), "GT1206"),
    "bool as size": (WEIGHTS, lambda t: meta(t, sizes=[{"as_int": True}, {"as_int": 4}]),
                     "GT1202"),
    "newer schema": (MODEL, lambda t: t.update(schema_version={"major": 99, "minor": 0}),
                     "GT1207"),
    "no graph": (MODEL, lambda t: t.pop("graph_module"), "GT1202"),
    "nodes of another kind": (MODEL, lambda t: graph_of(t).update(nodes=[1]), "GT1202"),
    "undefined operand": (MODEL, lambda t: graph_of(t)["nodes"].pop(0), "GT1103"),
    "wrong arguments": (MODEL, lambda t: node(t, inputs=[]), "GT1103"),
    "scripted object": (MODEL, lambda t: t["graph_module"]["signature"]["input_specs"].append(
        {"custom_obj": {"arg": {"name": "o", "class_fqn": "x"}, "custom_obj_name": "o"}}),
        "GT1206"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_edited_archives_are_refused(name, archive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    member, change, code = ATTACKS[name]
    path = edited(archive, tmp_path / "evil.pt2", json_edit(member, change))
    with pytest.raises(GraphtoolError) as caught:
        read_pt2(path)
    assert caught.value.code == code, str(caught.value)
    assert os.listdir(tmp_path) == ["evil.pt2"]


@pytest.mark.parametrize("member", ["data/weights/weight_0", "data/constants/tensor_0",
                                    "data/sample_inputs/model.pt", "extra.pkl"])
def test_no_pickle_is_ever_loaded(member, archive, tmp_path):
    """A pickle in place of raw bytes is bytes of the wrong content; elsewhere it is not read."""
    owned = tmp_path / "owned"
    bomb = pickle.dumps(Bomb(str(owned))).ljust(64, b"\0")
    path = edited(archive, tmp_path / "evil.pt2",
                  lambda name, data: bomb if name == member else data)
    with zipfile.ZipFile(path, "a") as z:
        z.writestr("model/extra.pkl", bomb)
    read_pt2(path)
    assert not owned.exists()


def test_guards_and_sample_inputs_are_not_read(archive, tmp_path):
    path = edited(archive, tmp_path / "m.pt2", json_edit(
        MODEL, lambda t: t.update(guards_code=[SHELL], opset_version="nonsense")))
    edited(path, tmp_path / "n.pt2", lambda name, data: None if "sample_inputs" in name else data)
    assert read_pt2(tmp_path / "n.pt2").output_names


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "flipped", "compressed", "twice"])
def test_damaged_files(damage, archive, tmp_path):
    path, data = tmp_path / "m.pt2", bytearray(archive.read_bytes())
    match damage:
        case "cut":
            path.write_bytes(data[:len(data) // 2])
        case "text":
            path.write_text("not a zip")
        case "empty":
            path.write_bytes(b"")
        case "flipped":  # one bit of a weight: the CRC notices
            with zipfile.ZipFile(archive) as z:
                raw = z.read("model/data/weights/weight_0")
            data[data.index(raw)] ^= 1
            path.write_bytes(data)
        case "compressed":
            with zipfile.ZipFile(archive) as old, zipfile.ZipFile(
                    path, "w", zipfile.ZIP_DEFLATED) as new:
                for info in old.infolist():
                    new.writestr(info.filename, old.read(info))
        case "twice":
            path.write_bytes(data)
            with pytest.warns(UserWarning), zipfile.ZipFile(path, "a") as z:
                z.writestr(f"model/{MODEL}", "{}")
    with pytest.raises(InputError) as caught:
        read_pt2(path)
    assert caught.value.code in ("GT1201", "GT1203")


def _other_type(program):
    graph = program["graph_module"]["graph"]
    name = graph["nodes"][1]["outputs"][0]["as_tensor"]["name"]
    graph["tensor_values"][name]["sizes"].insert(0, {"as_int": 2})


def _no_name(program):
    program["graph_module"]["graph"]["nodes"][1]["inputs"][0]["arg"]["as_tensor"]["name"] = ["x"]


@pytest.mark.parametrize("change, code", [(_other_type, "GT1103"), (_no_name, "GT1202")])
def test_programs_that_contradict_themselves(change, code, archive, tmp_path):
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(tmp_path / "m.pt2", "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith(MODEL):
                program = json.loads(data)
                change(program)
                data = json.dumps(program).encode()
            new.writestr(info.filename, data)
    with pytest.raises(InputError) as caught:
        read_pt2(tmp_path / "m.pt2")
    assert caught.value.code == code


@pytest.mark.parametrize("read", [read_pt2, kind_of])
def test_a_name_in_the_archive_that_is_no_text(read, tmp_path):
    with zipfile.ZipFile(tmp_path / "m.pt2", "w") as z:
        z.writestr("é/x", b"")
    data = (tmp_path / "m.pt2").read_bytes().replace("é".encode(), b"\xed\x28")
    (tmp_path / "m.pt2").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "m.pt2")
    assert caught.value.code in ("GT1201", "GT1211")


def test_old_archives_are_refused_by_name(tmp_path):
    path = tmp_path / "old.pt2"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("m/serialized_exported_program.json", "{}")
        z.writestr("m/serialized_state_dict.pt", b"")
    with pytest.raises(InputError, match="pickles"):
        read_pt2(path)


def test_sizes_that_data_decide(tmp_path):
    class Sizes(nn.Module):
        def forward(self, x):
            return x.nonzero(), x.sum().int().item()
    path, x = tmp_path / "m.pt2", torch.tensor([1.0, 0.0, 4.0])
    saved(path, Sizes(), x)
    places, total = interp.run(read_pt2(path), {"x": x.numpy()}).values()
    assert places.tolist() == [[0], [2]] and total == 5


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "uint8",
                                  "int16", "bool"])
def test_element_types_bit_for_bit(kind, tmp_path):
    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("w", torch.tensor([0.0, 1.0, 2.5, 40.0]).to(getattr(torch, kind)))

        def forward(self, x):
            return self.w.clone(), x + 1
    path, x = tmp_path / "m.pt2", torch.ones(1)
    saved(path, Holds(), x)
    live, stored = (interp.run(m, {"x": x.numpy()})["output_0"]
                    for m in (import_torch(Holds(), (x,)), read_pt2(path)))
    assert live.dtype == stored.dtype == array(Holds().w).dtype
    assert live.tobytes() == stored.tobytes() == array(Holds().w).tobytes()
