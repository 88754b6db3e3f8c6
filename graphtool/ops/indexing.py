"""Row-major arithmetic of indices and shapes, for reshapes and for code that walks over
elements."""

from __future__ import annotations

from graphtool.symbolic import Dim, exact_quotient


def flatten_index(idx: tuple[Dim, ...], shape: tuple[Dim, ...]) -> Dim:
    """The row-major position of idx."""
    flat: Dim = 0
    for i, d in zip(idx, shape, strict=True):
        flat = flat * d + i
    return flat


def unflatten_index(flat: Dim, shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The index whose row-major position is flat; zeros if the shape has no elements."""
    if any(d == 0 for d in shape):
        return (0,) * len(shape)
    out: list[Dim] = []
    for d in reversed(shape):
        out.append(flat % d if len(out) < len(shape) - 1 else flat)
        flat = flat // d
    return tuple(reversed(out))


def reshape_blocks(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> list[tuple[slice, slice]]:
    """The shortest groups of adjacent dimensions of a and b with equal products; a dimension of
    1 joins the group before it."""
    if any(d == 0 for d in (*a, *b)):
        return [(slice(0, len(a)), slice(0, len(b)))]
    blocks: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        i0, j0 = i, j
        pa: Dim = a[i] if i < len(a) else 1
        pb: Dim = b[j] if j < len(b) else 1
        i, j = min(i + 1, len(a)), min(j + 1, len(b))
        while pa != pb:
            if i < len(a) and (j >= len(b) or (exact_quotient(pb, pa) is not None
                               and exact_quotient(pa, pb) is None)):
                pa, i = pa * a[i], i + 1
            elif j < len(b):
                pb, j = pb * b[j], j + 1
            elif i < len(a):
                pa, i = pa * a[i], i + 1
            else:
                break
        blocks.append((slice(i0, i), slice(j0, j)))
    return blocks


def inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that reverses `perm`."""
    return tuple(perm.index(i) for i in range(len(perm)))
