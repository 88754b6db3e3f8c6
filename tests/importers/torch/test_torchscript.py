"""TorchScript archives: what torch computes of them, their names, and what is no archive."""

from __future__ import annotations

import os
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import graphtool
from graphtool import interp
from graphtool.errors import GraphtoolError, InputError, UnsupportedError, UsageError
from graphtool.importers import import_source
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.live import array
from graphtool.importers.torch.torchscript.modules import load
from graphtool.ir.graph import is_parameter
from graphtool.ir.text import value_names
from graphtool.ir.verify import verify_module
from tests.importers.torch import scripted_models as m

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own: TorchScript is deprecated
BATCH = {"batch": (1, 64)}


def seeded(kind):
    torch.manual_seed(0)
    return kind().eval()


def scripted(kind):
    return torch.jit.script(seeded(kind))


def traced(kind, *args):
    return torch.jit.trace(seeded(kind), args, strict=False, check_trace=False)


def rand(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(len(shape))) - 0.3


def agrees(script, args, folder, dynamic=None):
    """The module of the archive, which computes what torch does of it."""
    torch.jit.save(script, folder / "m.pt")
    module = import_torch(load(folder / "m.pt"), args, dynamic=dynamic)
    verify_module(module)
    names = value_names(module.graph)
    feeds = {names[v]: array(x) for v, x in zip(module.graph.inputs, args, strict=False)}
    feeds |= {names[module.graph.inputs[i]]: w.source for i, w in module.initial.items()}
    got = list(interp.run(module, feeds).values())
    want = [x if isinstance(x, torch.Tensor) else torch.tensor(x)
            for x in pytree.tree_leaves(script(*args))]
    for a, b in zip(got, want, strict=False):
        np.testing.assert_allclose(a, array(b), rtol=1e-4, atol=1e-5)
    assert len(got) >= len(want)
    return module


PAIR = (rand(2, 3, 4), rand(2, 3, 8))
SCRIPTED = {
    "net": (m.Net, (rand(2, 3, 8, 8),), BATCH), "branch": (m.Branch, (rand(3, 4),), None),
    "branch_other": (m.Branch, (-9 * rand(3, 4),), None), "while": (m.While, (rand(3, 4),), None),
    "nested": (m.Nested, (rand(2, 4),), None), "nested_other": (m.Nested, (-rand(2, 4),), None),
    "times": (m.Times, (rand(3, 4), torch.tensor(3)), None),
    "never": (m.Times, (rand(3, 4), torch.tensor(0)), None),
    "lists": (m.Lists, (rand(5, 4),), None), "state": (m.State, (rand(5, 4),), None),
    "options": (m.Options, (rand(5, 4), rand(5, 4)), None),
    "defaults": (m.Options, (rand(5, 4),), None), "recurrent": (m.Recurrent, PAIR, BATCH),
    "tied": (m.Tied, (rand(2, 4),), BATCH), "checked": (m.Checked, (rand(2, 4),), None)}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted(name, tmp_path):
    kind, args, dynamic = SCRIPTED[name]
    agrees(scripted(kind), args, tmp_path)
    if dynamic:
        assert "batch" in agrees(scripted(kind), args, tmp_path, dynamic).symbols


@pytest.mark.parametrize(("kind", "args"), [
    (m.Net, (rand(2, 3, 8, 8),)), (m.Recurrent, PAIR), (m.Tied, (rand(2, 4),))])
def test_traced(kind, args, tmp_path):
    agrees(traced(kind, *args), args, tmp_path)
    assert "batch" in agrees(traced(kind, *args), args, tmp_path, BATCH).symbols


def test_frozen(tmp_path):
    module = agrees(torch.jit.freeze(scripted(m.Net)), (rand(2, 3, 8, 8),), tmp_path)
    assert not any(map(is_parameter, module.graph.nodes))


def test_names_places_and_branches(tmp_path):
    module = agrees(scripted(m.Branch), (rand(3, 4),), tmp_path)
    names = value_names(module.graph)
    assert [names[n.outputs[0]] for n in module.graph.nodes if is_parameter(n)] == [
        "@fc.weight", "@fc.bias", "@other.weight", "@other.bias"]
    ops = {n.op.name: n for n in module.graph.nodes}
    assert "cond" in ops and ops["linear"].where == "fc"
    assert "scripted_models.py:" in module.locations["fc"].at
    assert module.locations["fc"].text == "y = self.fc(x)"
    assert [v.hint for v in agrees(scripted(m.Options), (rand(5, 4), rand(5, 4)),
                                   tmp_path).graph.inputs] == ["x", "mask"]


def test_a_loop_on_data_is_a_loop_of_the_graph(tmp_path):
    module = agrees(scripted(m.While), (rand(3, 4),), tmp_path)
    assert sum(n.op.name == "while" for n in module.graph.nodes) == 1


def test_gradients_are_those_of_torch(tmp_path):
    script, x = scripted(m.Branch), rand(3, 4)
    step = graphtool.grad(agrees(script, (x,), tmp_path), graphtool.Recipe("mse", target="want"))
    found = graphtool.evaluate(step, {"x": x.numpy(), "want": np.zeros((3, 4), np.float32)})
    nn.functional.mse_loss(script(x)[0], torch.zeros(3, 4)).backward()
    for name, p in script.named_parameters():
        if p.grad is not None:
            np.testing.assert_allclose(found[f"grad.{name}"], p.grad, rtol=1e-4, atol=1e-6)


def test_a_live_script_module_is_taken_too():
    module = import_torch(scripted(m.Tied), (rand(2, 4),))
    assert sum(map(is_parameter, module.graph.nodes)) == 3
    with pytest.raises(UsageError, match="GT1104"):
        import_torch(scripted(m.Tied), (rand(2, 4),), capture="fx")


# ---- refusals ----------------------------------------------------------------------------------

@pytest.mark.parametrize(("kind", "args", "said"), [
    (m.Checked, (rand(2, 4, 2),), r"raises 'a matrix is wanted'(.|\n)*scripted_models.py:\d+ Ch"),
    (m.Uneven, (rand(3, 4),), r"cond: its size depends on the data(.|\n)*scripted_models.py:\d+"),
    (m.Grown, (rand(3, 4),), r"prim.If: a list or dict that a branch(.|\n)*models.py:\d+ Grown"),
    (m.Counter, (rand(3, 4),), "changes the attribute n, which is not a buffer"),
    (m.Tied, (rand(3, 5),), r"scripted_models.py:\d+ Tied.forward(.|\n)*self.b\(self.a\(x\)\)")])
def test_one_clear_error(kind, args, said, tmp_path):
    torch.jit.save(scripted(kind), tmp_path / "m.pt")
    with pytest.raises(UnsupportedError, match=said):
        import_torch(load(tmp_path / "m.pt"), args)


def test_quantised_archives_are_refused_by_name(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4)), {nn.Linear})
    torch.jit.save(torch.jit.script(model), tmp_path / "m.pt")
    with pytest.raises(UnsupportedError, match=r"quantized.linear_dynamic: .*not supported"):
        import_torch(load(tmp_path / "m.pt"), (rand(2, 4),))


class Trap:
    """Writes a file if it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"m/{name.replace('__', '/').replace('_DOT_', '.')}", data)


def written_pickles(folder, trap):
    """Files that are no TorchScript archives, and what the error says of each."""
    bad = pickle.dumps(Trap(trap))
    torch.save(seeded(m.Tied).state_dict(), folder / "state.pt")
    torch.save(seeded(m.Tied).state_dict(), folder / "old.pt", _use_new_zipfile_serialization=False)
    torch.save(seeded(m.Tied), folder / "whole.pt")
    (folder / "plain.pt").write_bytes(bad)
    zipped(folder / "trap.pt", data_DOT_pkl=bad)
    zipped(folder / "inside.pt", data_DOT_pkl=bad, constants_DOT_pkl=b"\x80\x02).",
           code__x_DOT_py="", version="3\n")
    (folder / "text.pt").write_text("hello")
    zipped(folder / "other.pt", a="b")
    return {"state.pt": "GT1212.*weights without a model", "old.pt": "GT1212", "whole.pt":
            r"GT1212.*scripted_models\.Tied", "plain.pt": r"GT1212.*(posix|nt)\.mkdir", "trap.pt":
            r"GT1212.*(posix|nt)\.mkdir", "inside.pt": "GT1211", "text.pt": "GT1211",
            "other.pt": "GT1211", "none.pt": "GT0332"}


def test_a_pickle_is_told_and_never_loaded(tmp_path):
    trap = tmp_path / "sprung"
    for name, said in written_pickles(tmp_path, trap).items():
        with pytest.raises(InputError, match=said):
            import_source(str(tmp_path / name), inputs=["x:f32[2,4]"])
        assert not trap.exists(), name
    with pytest.raises(InputError, match=r"load its weights there|torch\.load"):
        import_source(str(tmp_path / "state.pt"))


def test_cut_archives(tmp_path):
    torch.jit.save(scripted(m.Tied), tmp_path / "m.pt")
    data = (tmp_path / "m.pt").read_bytes()
    for n in range(0, len(data), 257):
        (tmp_path / "cut.pt").write_bytes(data[:n])
        with pytest.raises(GraphtoolError):
            import_source(str(tmp_path / "cut.pt"), inputs=["x:f32[2,4]"])


def test_inputs_are_asked_for(tmp_path):
    torch.jit.save(scripted(m.Times), tmp_path / "m.pt")
    with pytest.raises(InputError, match=r"(?s)GT1114.*x: Tensor, n: Tensor\n.*import, build"):
        import_source(str(tmp_path / "m.pt"))


def test_an_exported_program_may_be_called_pt(tmp_path: Path):
    torch.export.save(torch.export.export(seeded(m.Tied), (rand(2, 4),)), tmp_path / "p.pt2")
    (tmp_path / "p.pt2").rename(tmp_path / "p.pt")
    assert len(import_source(str(tmp_path / "p.pt")).graph.inputs) == 1
