"""Higher-order ops: branches, loops and scans against eager, in the evaluator and in C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._higher_order_ops import associative_scan, map, scan, while_loop

from graphtool import build
from graphtool.errors import UnsupportedError
from graphtool.native import runtime
from tests.importers.torch.agreement import agree, normal


def _branch(x: Any, w: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda a: a @ w, lambda a: (a @ w).sin() - 1, (x,))


def _nested(x: Any) -> Any:
    return torch.cond(
        x.max() > 1, lambda a: torch.cond(a.min() < 0, lambda b: b * 2, lambda b: b + 1, (a,)),
        lambda a: a.cos(), (x,))


def _by_size(x: Any) -> Any:
    return torch.cond(x.shape[0] > 4, lambda a: a * 2, lambda a: a - 1, (x,))


def _doubled(x: Any) -> Any:
    return while_loop(lambda i, y: y.sum() < 100, lambda i, y: (i + 1, y * 2),
                      (torch.tensor(0), x.abs() + 1))


def _captures(x: Any, w: Any) -> Any:
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, torch.tanh(y @ w)),
                      (torch.tensor(0), x))[1]


def _running(x: Any) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, c + row.sin()), torch.zeros(x.shape[1:],
                                                                           dtype=x.dtype), x)


def _backwards(x: Any, w: Any) -> Any:
    return scan(lambda c, row: (torch.tanh(c + row @ w), c.sum()), x[0], x, reverse=True)


def _mapped(x: Any, w: Any) -> Any:
    return map(lambda row, m: (row @ m, row.sum()), x, w)


def _product(x: Any) -> Any:
    return associative_scan(lambda a, b: a * b, x, 0, combine_mode="generic")


def _complex_branch(x: Any) -> Any:
    z = torch.fft.fft(x)
    return torch.view_as_real(torch.cond(x.sum() > 0, lambda z: z * 1j, lambda z: z.conj() + 1,
                                         (z,)))


def _complex_loop(x: Any) -> Any:
    z = torch.view_as_complex(x / 9)
    return while_loop(lambda i, w: i < 4, lambda i, w: (i + 1, w * w + 0.5),
                      (torch.tensor(0), z * 1.0))[1].abs()


def _complex_scan(x: Any, a: Any) -> Any:
    rot = torch.polar(torch.sigmoid(a[0]), a[1])
    state = torch.zeros(x.shape[1], dtype=torch.complex128)
    last, rows = scan(lambda h, u: (rot * h + u, (rot * h).real), state, torch.complex(x, x))
    return last.real, rows, map(lambda r: r * r.conj() * 2j, torch.complex(x, -x)).imag


def _complex_product(x: Any) -> Any:
    z = torch.view_as_complex(x)
    return associative_scan(lambda a, b: a * b, z, 0, combine_mode="generic").real


CASES: list[tuple[str, Callable[..., Any], tuple[tuple[int, ...], ...]]] = [
    ("cond", _branch, ((2, 3), (3, 4))), ("nested", _nested, ((5,),)),
    ("while", _doubled, ((4,),)), ("while_captures", _captures, ((2, 3), (3, 3))),
    ("scan", _running, ((5, 3),)), ("scan_reverse", _backwards, ((4, 3), (3, 3))),
    ("complex_cond", _complex_branch, ((3, 4),)), ("complex_while", _complex_loop, ((3, 2),)),
    ("complex_scan", _complex_scan, ((5, 4), (2, 4))),
    ("complex_associative_scan", _complex_product, ((4, 3, 2),)),
    ("map", _mapped, ((4, 3), (3, 2))), ("associative_scan", _product, ((6, 2),)),
]


@pytest.mark.parametrize(("name", "fn", "shapes"), CASES, ids=[c[0] for c in CASES])
def test_it_is_as_in_eager(name: str, fn: Callable[..., Any], shapes: Any,
                           tmp_path: Path) -> None:
    for seed in range(3 if name in ("cond", "nested") else 1):
        xs = [normal(*s, seed=seed) for s in shapes]
        module = agree(fn, *xs)
    model = runtime.load(build(module, tmp_path / "b"), 1)
    with torch.no_grad():
        wanted = [y for y in torch.utils._pytree.tree_leaves(fn(*xs))]
    got = model.run(dict(zip([s.name for s in model.inputs], (x.numpy() for x in xs),
                             strict=True)))
    for a, b in zip(got.values(), wanted, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [3, 6])
def test_a_branch_on_a_size(n: int) -> None:
    agree(_by_size, normal(n, 2), dynamic={"batch": (2, None)})


def test_what_a_branch_lacks_is_listed_with_the_rest() -> None:
    eig = torch.linalg.eigvals

    def fn(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda a: eig(a).abs().sum(), lambda a: a.sum(), (x,)
                          ) + eig(x).abs().sum()
    with pytest.raises(UnsupportedError) as caught:
        agree(fn, normal(3, 3))
    assert [len(i.places) for i in caught.value.items] == [2]


class _Leafy(torch.fx.Tracer):
    """Keeps every module of ours whole, where fx would look into it."""

    def is_leaf_module(self, m: Any, name: str) -> bool:
        return True


class _Whole(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh()).double()
        self.scale = torch.nn.Parameter(torch.full((4,), 2.0).double())

    def forward(self, x: Any) -> Any:
        return self.inner(x).mul(self.scale).flatten()


@pytest.mark.parametrize("capture", ["export", "fx"])
def test_a_traced_module_with_leaves_of_its_own(capture: str) -> None:
    model = _Whole()
    graph = _Leafy().trace(model)
    assert {n.op for n in graph.nodes} >= {"call_module", "call_method", "get_attr"}
    agree(torch.fx.GraphModule(model, graph), normal(2, 3), capture=capture)


# what flex_attention is given: a function of the score, one that masks
FLEX: dict[str, tuple[Any, Any]] = {
    "plain": (None, None),
    "causal": (None, lambda b, h, q, k: q >= k),
    "distance": (lambda s, b, h, q, k: s + (k - q) * 0.1 * (h + 1), None),
    "softcap": (lambda s, b, h, q, k: 2 * torch.tanh(s / 2), lambda b, h, q, k: (q - k).abs() < 3),
    "empty_rows": (lambda s, b, h, q, k: s * 2, lambda b, h, q, k: q > k),
}


@pytest.mark.parametrize("name", FLEX)
def test_flex_attention(name: str) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    score, keep = FLEX[name]
    block = None if keep is None else create_block_mask(keep, None, None, 8, 8, device="cpu")

    def fn(q: Any, k: Any, v: Any) -> Any:
        return flex_attention(q, k, v, score_mod=score, block_mask=block, enable_gqa=True)
    agree(fn, *(normal(2, h, 8, 4, seed=h, dtype=torch.float32) for h in (4, 2, 2)), tol=2e-6)
