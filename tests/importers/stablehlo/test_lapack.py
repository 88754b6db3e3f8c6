"""Calls of LAPACK that JAX makes, beside torch; what LAPACK leaves open is held to its meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphtool
from graphtool import interp
from graphtool.errors import UnsupportedError
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names

Array = np.ndarray[Any, Any]
ELEMENTS = {"f": "f32", "d": "f64", "F": "complex<f32>", "D": "complex<f64>", "i": "i32"}
LETTER = {"d": "d", "D": "z"}
DRAWN = np.random.default_rng(5)


def drawn(kind: str, *shape: int) -> Array:
    x = DRAWN.normal(size=shape) + (1j * DRAWN.normal(size=shape) if kind in "FD" else 0)
    return x.astype(kind)


def hermitian(x: Array) -> Array:
    return np.asarray(x + np.conj(np.swapaxes(x, -1, -2)))


def program(name: str, config: str, results: list[tuple[str, tuple[int, ...]]],
            *given: Array) -> Module:
    """A program with one call of LAPACK; operands that are integers are zeros."""
    def kind(char: str, shape: tuple[int, ...]) -> str:
        return f"tensor<{''.join(f'{n}x' for n in shape)}{ELEMENTS[char]}>"
    types = [kind(x.dtype.char, x.shape) for x in given]
    made = [kind(*r) for r in results]
    names = [f"%a{i}" for i in range(len(given))]
    heads = ", ".join(f"{n}: {t}" for n, t, x in zip(names, types, given, strict=True)
                      if x.dtype.kind != "i")
    fixed = "".join(f"{n} = stablehlo.constant dense<0> : {t}\n" for n, t, x in zip(
        names, types, given, strict=True) if x.dtype.kind == "i")
    several = f":{len(made)}" if len(made) > 1 else ""
    ends = [f"%0#{i}" for i in range(len(made))] if several else ["%0"]
    return import_text(f"""module {{
  func.func public @main({heads}) -> ({", ".join(made)}) {{
    {fixed}%0{several} = stablehlo.custom_call @lapack_{name}_ffi({", ".join(names)})
      {{mhlo.backend_config = {{{config}}}}} : ({", ".join(types)}) -> ({", ".join(made)})
    return {", ".join(ends)} : {", ".join(made)}
  }}
}}""")


def tensors(given: tuple[Array, ...]) -> list[Array]:
    return [p for x in given if x.dtype.kind != "i"
            for p in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]


def joined(parts: list[Array], results: list[tuple[str, tuple[int, ...]]]) -> list[Array]:
    rest = iter(parts)
    return [next(rest) + 1j * next(rest) if char in "FD" else next(rest) for char, _ in results]


def called(name: str, config: str, results: list[tuple[str, tuple[int, ...]]], *given: Array,
           compiled: Path | None = None) -> list[Array]:
    module = program(name, config, results, *given)
    names = value_names(module.graph)
    arrays = {names[v]: np.ascontiguousarray(x) for v, x in zip(
        module.graph.inputs, tensors(given), strict=True)}
    if compiled is None:
        return joined(list(interp.run(module, arrays).values()), results)
    graphtool.build(module, str(compiled), name="model")
    return joined([np.array(x) for x in graphtool.load(str(compiled)).run(arrays).values()],
                  results)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), 1e-5, 1e-5)


@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (2, 4, 4)])
def test_complex_qr_is_lapacks(shape: tuple[int, ...]) -> None:
    a = drawn("D", *shape)
    short = min(shape[-2:])
    packed, tau = called("zgeqrf", "", [("D", shape), ("D", (*shape[:-2], short))], a)
    want, factor = torch.geqrf(torch.from_numpy(a))
    close(packed, want)
    close(tau, factor)
    reflections = packed[..., :short]
    (q,) = called("zungqr", "", [("D", reflections.shape)], reflections, tau)
    close(q, torch.linalg.householder_product(torch.from_numpy(reflections),
                                              torch.from_numpy(tau)))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("kind", ["d", "D"])
def test_products_with_reflections(kind: str, left: bool, turned: bool) -> None:
    a, tau, c = drawn(kind, 4, 3), drawn(kind, 3), drawn(kind, *((4, 5) if left else (5, 4)))
    name = {"d": "dormqr", "D": "zunmqr"}[kind]
    (got,) = called(name, f"left = {str(left).lower()}, transpose = {str(turned).lower()}",
                    [(kind, c.shape)], a, tau, c)
    close(got, torch.ormqr(*map(torch.from_numpy, (a, tau, c)), left=left, transpose=turned))


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (2, 5, 3)])
def test_complex_lu_takes_lapacks_pivots(shape: tuple[int, ...]) -> None:
    a = drawn("D", *shape)
    lead = shape[:-2]
    results = [("D", shape), ("i", (*lead, min(shape[-2:]))), ("i", lead)]
    packed, pivots, fine = called("zgetrf", "", results, a)
    want, swaps = torch.linalg.lu_factor(torch.from_numpy(a))
    close(packed, want)
    np.testing.assert_array_equal(pivots, swaps)
    assert not fine.any()


def eigenvectors(a: Array, lower: bool, compiled: Path | None = None) -> None:
    n, lead = a.shape[-1], a.shape[:-2]
    v, w, _ = called("zheevd", f"mode = 86 : ui8, uplo = {76 if lower else 85} : ui8",
                     [("D", a.shape), ("d", (*lead, n)), ("i", lead)],
                     np.tril(a) if lower else np.triu(a), compiled=compiled)
    close(w, np.linalg.eigvalsh(a))
    close(a @ v, v * w[..., None, :])
    close(np.conj(np.swapaxes(v, -1, -2)) @ v, np.broadcast_to(np.eye(n), a.shape))
    close(v[..., 0 if lower else -1, :].imag, 0)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 4, 4)])
def test_eigenvectors_of_hermitian_matrices(shape: tuple[int, ...], lower: bool) -> None:
    eigenvectors(hermitian(drawn("D", *shape)), lower)


def test_eigenvectors_of_equal_eigenvalues_are_orthogonal() -> None:
    q, _ = np.linalg.qr(drawn("D", 4, 4))
    eigenvectors((q * np.array([1.0, 1, 2, 2])) @ np.conj(q.T), True)


def test_compiled_eigenvectors(tmp_path: Path) -> None:
    eigenvectors(hermitian(drawn("D", 4, 4)), True, tmp_path / "build")


@pytest.mark.parametrize(("shape", "mode"), [((5, 3), "S"), ((3, 5), "S"), ((5, 3), "A"),
                                             ((2, 4, 4), "S"), ((3, 4), "N")])
def test_complex_singular_values(shape: tuple[int, ...], mode: str) -> None:
    a, (*lead, m, n) = drawn("D", *shape), shape
    k = min(m, n)
    left, right = (m, n) if mode in "AN" else (k, k)
    _, s, u, v, _ = called(
        "zgesdd", f"mode = {ord(mode)} : ui8",
        [("D", shape), ("d", (*lead, k)), ("D", (*lead, m, left)), ("D", (*lead, right, n)),
         ("i", tuple(lead))], a)
    close(s, np.linalg.svd(a, compute_uv=False))
    if mode != "N":
        close((u[..., :k] * s[..., None, :]) @ v[..., :k, :], a)
        for x in (np.conj(np.swapaxes(u, -1, -2)) @ u, v @ np.conj(np.swapaxes(v, -1, -2))):
            close(x, np.broadcast_to(np.eye(x.shape[-1]), x.shape))
        close((u[..., 0, :] if m < n else v[..., :k, 0]).imag, 0)


def test_singular_vectors_of_a_matrix_of_low_rank_are_orthogonal() -> None:
    a = drawn("D", 4, 1) @ drawn("D", 1, 3)
    _, s, u, v, _ = called("zgesdd", "mode = 83 : ui8", [
        ("D", (4, 3)), ("d", (3,)), ("D", (4, 3)), ("D", (3, 3)), ("i", ())], a)
    close((u * s) @ v, a)
    close(np.conj(u.T) @ u, np.eye(3))


@pytest.mark.parametrize("kind", ["d", "D"])
def test_pivoted_qr_takes_the_longest_column_first(kind: str) -> None:
    a = drawn(kind, 5, 4)
    packed, order, tau = called(
        f"{LETTER[kind]}geqp3", "", [(kind, (5, 4)), ("i", (4,)), (kind, (4,))], a,
        np.zeros(4, np.int32))
    q = torch.linalg.householder_product(torch.from_numpy(packed), torch.from_numpy(tau)).numpy()
    close(q @ np.triu(packed)[:4], a[:, order - 1])
    heads = np.abs(np.diag(packed))
    assert (heads[:-1] >= heads[1:]).all()


def basis(packed: Array, tau: Array, lower: bool = True) -> Array:
    """Q of reflections that start one row below the diagonal."""
    n = packed.shape[-1]
    if not lower:
        return basis(packed[::-1, ::-1], tau[::-1])[::-1, ::-1]
    q = np.eye(n, dtype=packed.dtype)
    own = np.ascontiguousarray(packed[1:, :-1])
    q[1:, 1:] = torch.linalg.householder_product(torch.from_numpy(own), torch.from_numpy(
        np.ascontiguousarray(tau))).numpy()
    return q


@pytest.mark.parametrize("kind", ["d", "D"])
def test_hessenberg(kind: str) -> None:
    a = drawn(kind, 5, 5)
    packed, tau, _ = called(f"{LETTER[kind]}gehrd", "high = 5 : i32, low = 1 : i32",
                            [(kind, (5, 5)), (kind, (4,)), ("i", ())], a)
    q = basis(packed, tau)
    close(q @ np.triu(packed, -1) @ np.conj(q.T), a)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("name", ["dsytrd", "zhetrd"])
def test_tridiagonal_form(name: str, lower: bool) -> None:
    kind = "D" if name[0] == "z" else "d"
    a = hermitian(drawn(kind, 5, 5))
    packed, d, e, tau, _ = called(
        name, f"uplo = {76 if lower else 85} : ui8",
        [(kind, (5, 5)), ("d", (5,)), ("d", (4,)), (kind, (4,)), ("i", ())],
        np.tril(a) if lower else np.triu(a))
    q = basis(packed, tau, lower)
    close(q @ (np.diag(d) + np.diag(e, 1) + np.diag(e, -1)) @ np.conj(q.T), a)


def systems(kind: str, compiled: Path | None = None) -> None:
    below, main, above = (drawn(kind, 2, 6) for _ in range(3))
    b = drawn(kind, 2, 6, 3)
    *_, x, _ = called(f"{LETTER[kind]}gtsv", "", [
        *((kind, (2, 6)) for _ in range(3)), (kind, (2, 6, 3)), ("i", (2,))], below, main, above, b,
        compiled=compiled)
    for i in range(2):
        dense = np.diag(main[i]) + np.diag(below[i, 1:], -1) + np.diag(above[i, :-1], 1)
        close(dense @ x[i], b[i])


@pytest.mark.parametrize("kind", ["d", "D"])
def test_tridiagonal_systems(kind: str) -> None:
    systems(kind)


def test_compiled_tridiagonal_systems(tmp_path: Path) -> None:
    systems("D", tmp_path / "build")


@pytest.mark.parametrize(("name", "config", "results"), [
    ("zgeev", "compute_left = 78 : ui8, compute_right = 86 : ui8",
     [("D", (3,)), ("D", (3, 3)), ("D", (3, 3)), ("i", ())]),
    ("zgees", "mode = 86 : ui8, sort = 78 : ui8",
     [("D", (3, 3)), ("D", (3, 3)), ("D", (3,)), ("i", ()), ("i", ())])])
def test_eigenvalues_of_general_matrices_are_refused_by_name(
        name: str, config: str, results: list[tuple[str, tuple[int, ...]]]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        program(name, config, results, drawn("D", 3, 3))
    (item,) = caught.value.items
    assert item.name == f"stablehlo.custom_call @lapack_{name}_ffi"
    assert "general matrices" in item.reason
