"""`import file.py:fn --capture jax`, from the command line; needs jax."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphtool.io.release import install
from tests.cli.conftest import Cli, gt  # noqa: F401  (a fixture)

SOURCE = '''
import jax, jax.numpy as jnp

def net(p, x, unused=None):
    with jax.named_scope("head"):
        return {"y": jax.nn.softmax(x @ p["w"] + p["b"]), "z": x.sum()}

def inputs():
    return {"w": jnp.ones((4, 3)), "b": jnp.ones(3)}, jnp.ones((2, 4))

def branch(x):
    return x if x.sum() > 0 else -x

number = 5
'''


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    return path


def test_a_function_is_captured_and_checked(source: Path, gt: Cli) -> None:  # noqa: F811
    pytest.importorskip("jax")
    out = source.parent / "net.graph.json"
    done = gt("import", f"{source}:net", "--capture", "jax", "-o", out)
    assert done.code == 0 and "agrees with jax on 2 inputs" in done.err
    shown = gt("show", out).out
    assert "input p.w: f32[4,3]" in shown and "input x: f32[2,4]" in shown
    assert "as result.y" in shown and "head.matmul" in shown and "at net.py:6" in shown


def test_specs_make_trees_and_open_sizes(source: Path, gt: Cli) -> None:  # noqa: F811
    pytest.importorskip("jax")
    out = source.parent / "net.graph.json"
    done = gt("import", f"{source}:net", "--capture", "jax", "--inputs", "p.w:f32[4,3]",
              "--inputs", "p.b:f32[3]", "--inputs", "x:f32[n,4]", "--dynamic", "n=2..9", "-o", out)
    assert done.code == 0, done.err
    shown = gt("show", out).out
    assert "dim n: 2..9" in shown and "input x: f32[n,4]" in shown


@pytest.mark.parametrize(("name", "options", "code", "said"), [
    ("branch", ("--inputs", "x:f32[3]"), 4, "GT1118"), ("number", (), 3, "GT1119"),
    ("nothing", (), 3, "GT1112"), ("net", ("--inputs", "x"), 2, "GT1115"),
    ("net", ("--dynamic", "n@q.0"), 2, "GT1104")])
def test_faults(name: str, options: tuple[str, ...], code: int, said: str, source: Path,
                gt: Cli) -> None:  # noqa: F811
    pytest.importorskip("jax")
    done = gt("import", f"{source}:{name}", "--capture", "jax", *options)
    assert (done.code, said in done.err) == (code, True), done.err


def test_without_jax_there_is_one_error(source: Path, gt: Cli,  # noqa: F811
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphtool.importers.table.find_spec", lambda name: None)
    done = gt("import", f"{source}:net", "--capture", "jax")
    assert done.code == 2 and "GT1117" in done.err and install("jax") in done.err


STATISTICS = """
import jax, jax.numpy as jnp, numpy as np

def norm(stats, x, key):
    noise = jax.random.uniform(key, x.shape)
    return jnp.maximum((x - stats["mean"]) * jax.lax.rsqrt(stats["var"]) + noise, 0), key

def inputs():
    return ({"mean": np.zeros(4, np.float32), "var": np.ones(4, np.float32)},
            np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), jax.random.key(3))
"""


def test_the_check_takes_what_the_file_offers(tmp_path: Path, gt: Cli) -> None:  # noqa: F811
    """A variance is above 0, a key of jax.random is a type of its own."""
    pytest.importorskip("jax")
    (tmp_path / "norm.py").write_text(STATISTICS)
    out = tmp_path / "norm.graph.json"
    done = gt("import", f"{tmp_path / 'norm.py'}:norm", "--capture", "jax", "-o", out)
    assert done.code == 0 and "agrees with jax on 2 inputs" in done.err, done.err
    assert "input key: u32[2]" in gt("show", out).out
