"""The package for CasADi: called and differentiated by CasADi, beside its own derivatives of the
same network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphtool
from graphtool.errors import GraphtoolError
from graphtool.package.forms import package
from tests.package.conftest import run

SAMPLES = Path(__file__).parents[2] / "samples"
casadi = pytest.importorskip("casadi")
X, P = (2, 3), (4,)


class Net(torch.nn.Module):
    """A matrix that is no row or column, a vector beside it, and two results."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(3, 4), torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor, p: torch.Tensor) -> Any:
        h = torch.tanh(self.up(x)) * p
        return self.down(h), h.sin().sum()


def built(folder: Path, dtype: torch.dtype, weights: Any) -> Path:
    net = Net().to(dtype)
    f = graphtool.import_model(net, (torch.zeros(X, dtype=dtype), torch.zeros(P, dtype=dtype)))
    adjoint = graphtool.vjp(f)
    graphs = {"f": f, "adj": adjoint, "fwd": graphtool.jvp(f), "jac": graphtool.jacobian(f),
              "hess": graphtool.jacobian(adjoint, of=("cotangent.x", "cotangent.p")),
              "hv": graphtool.jvp(adjoint)}
    return graphtool.build(graphs, folder / "build", name="net", target="x86-64-v3",
                           weights=weights)


def compiled(folder: Path, build: Path) -> Path:
    """The package, compiled by the line of its README."""
    made, again = (Path(package(build, "casadi", folder / n).path) for n in ("out", "again"))
    assert all(f.read_bytes() == (again / f.name).read_bytes() for f in made.iterdir())
    line = re.search(r"^    (cc .*)$", (made / "README.md").read_text(), re.M)
    assert line is not None
    run(*line[1].replace("cc -O3", "cc -O1 -Wall -Wextra -Werror").split(), cwd=made)
    return made / "net.so"


@pytest.fixture(scope="module", params=[(torch.float64, "file"), (torch.float32, "embed")],
                ids=["float64", "float32"])
def functions(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[
        tuple[Any, Any, float]]:
    """Ours, the same network in CasADi's own operations, and how exact ours is."""
    dtype, weights = request.param
    folder = tmp_path_factory.mktemp("casadi")
    library = compiled(folder, built(folder, dtype, weights))
    net, x, p = Net(), casadi.MX.sym("x", *X), casadi.MX.sym("p", *P)
    w = {n: casadi.DM(v.detach().to(dtype).double().numpy()) for n, v in net.named_parameters()}
    rows = casadi.repmat
    h = casadi.tanh(x @ w["up.weight"].T + rows(w["up.bias"].T, X[0], 1)) * rows(p.T, X[0], 1)
    y = h @ w["down.weight"].T + rows(w["down.bias"].T, X[0], 1)
    theirs = casadi.Function("theirs", [x, p], [y, casadi.sum2(casadi.sum1(casadi.sin(h)))])
    yield casadi.external("net", str(library)), theirs, 1e-12 if weights == "file" else 2e-6


def derivatives(f: Any) -> Any:
    """Values, Jacobians, a gradient, a Hessian, and products with directions."""
    x, p, v = casadi.MX.sym("x", *X), casadi.MX.sym("p", *P), casadi.MX.sym("v", *X)
    y, s = f(x, p)
    loss = casadi.sumsqr(y) + s * s
    slope = casadi.gradient(loss, x)
    return casadi.Function("d", [x, p, v], [
        y, s, casadi.jacobian(y, x), casadi.jacobian(y, p), casadi.jacobian(s, x), slope,
        casadi.gradient(loss, p), casadi.hessian(loss, x)[0], casadi.jtimes(y, x, v),
        casadi.jtimes(slope, x, v), casadi.jacobian(slope, p)])


def test_casadi_computes_and_differentiates(functions: tuple[Any, Any, float]) -> None:
    ours, theirs, exact = functions
    assert (ours.name_in(), ours.size_in(0), ours.size_in(1)) == (["x", "p"], X, (P[0], 1))
    rng = np.random.default_rng(0)
    given = [rng.normal(size=s) for s in (X, P, X)]
    for got, want in zip(derivatives(ours)(*given), derivatives(theirs)(*given), strict=True):
        np.testing.assert_allclose(np.array(got), np.array(want), rtol=50 * exact, atol=10 * exact)


def test_an_optimiser_uses_it(functions: tuple[Any, Any, float]) -> None:
    """Newton's method over our gradient and Hessian ends where the gradient is 0."""
    ours, _, exact = functions
    p = casadi.MX.sym("p", *P)
    y, _ = ours(np.full(X, 0.3), p)
    loss = casadi.sumsqr(y - 0.1)
    hessian, slope = casadi.hessian(loss, p)
    step = casadi.Function("step", [p], [p - casadi.solve(hessian, slope), slope])
    at = np.ones(P)
    for _ in range(6):
        at, left = step(at)
    assert float(casadi.norm_inf(left)) <= 20 * exact


def open_size(folder: Path) -> Path:
    module = graphtool.import_model(SAMPLES / "digits.onnx")
    return graphtool.build(module, folder / "b", name="net")


def stranger(folder: Path) -> Path:
    f = graphtool.import_model(torch.nn.Linear(3, 2), (torch.zeros(3),))
    other = graphtool.import_model(torch.nn.Linear(2, 2), (torch.zeros(2),))
    return graphtool.build({"f": f, "other": other}, folder / "b", name="net")


class Index(torch.nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x[i]


def integers(folder: Path) -> Path:
    f = graphtool.import_model(Index(), (torch.zeros(3), torch.zeros(2, dtype=torch.int64)))
    return graphtool.build(f, folder / "b", name="net")


@pytest.mark.parametrize("case, says", [
    (open_size, "GT2242.*fixed sizes"), (stranger, "GT2242.*other is no derivative"),
    (integers, "GT2243.*doubles")], ids=["open", "stranger", "integers"])
def test_what_it_does_not_take(case: Callable[[Path], Path], says: str, tmp_path: Path) -> None:
    with pytest.raises(GraphtoolError, match=says):
        package(case(tmp_path), "casadi", tmp_path / "out")
    assert not (tmp_path / "out").exists()
