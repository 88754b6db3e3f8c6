"""Random small graphs over the op set, whose values stay tame enough to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import Symbol, symbol

B = symbol("B", 0, 9)
SYMBOLS = {"B": Symbol("B", 0, 9)}


class Fuzzer:
    """Grows a graph op by op from a pool of values; what an op refuses is simply not added."""

    def __init__(self, seed: int, symbolic: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = Builder()
        self.batch: Any = B if symbolic else int(self.rng.integers(1, 4))
        self.pool: list[Tracer] = []
        self.inputs: list[Tracer] = []
        for _ in range(2):
            rank = int(self.rng.integers(1, 5))
            self.input((self.batch, *map(int, self.rng.integers(1, 7, rank - 1))))
        self.input((self.batch, 8, 6, 6))
        self.indices = self.input((self.batch, 3), dtypes.int64)

    def input(self, shape: Any, dtype: Any = dtypes.float32) -> Tracer:
        x = self.builder.input(TensorType(dtype, tuple(shape)), f"x{len(self.inputs)}")
        self.inputs.append(x)
        if dtype is dtypes.float32:
            self.pool.append(x)
        return x

    def pick(self, rank: int | None = None) -> Tracer:
        found = [x for x in self.pool if rank is None or x.ndim == rank] or self.pool
        return found[int(self.rng.integers(len(found)))]

    def constant(self, *shape: int) -> Tracer:
        return self.builder.constant((self.rng.standard_normal(shape) * 0.4).astype(np.float32))

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def grow(self, count: int) -> None:
        for _ in range(count):
            name = list(STEPS)[self.below(len(STEPS))]
            try:
                out = STEPS[name](self)
            except (InputError, TypeError):
                continue
            if out is not None and all(not isinstance(d, int) or d < 400 for d in out.shape):
                self.pool.append(out)

    def module(self) -> Module:
        fixed = [x for x in self.pool if x.value not in {i.value for i in self.inputs}]
        outs = [*fixed[-2:], *(self.pool[self.below(len(self.pool))] for _ in range(3))]
        graph = Graph(tuple(x.value for x in self.inputs), tuple(self.builder.nodes),
                      tuple(x.value for x in outs))
        return Module(graph, tuple(f"y{i}" for i in range(len(outs))),
                      SYMBOLS if self.batch is B else {})

    def arrays(self, batch: int, seed: int = 0) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        out: dict[str, Any] = {}
        for x in self.inputs:
            shape = [batch if d is B else d for d in x.shape]
            out[x.value.hint] = rng.integers(0, 3, shape) if x.dtype is dtypes.int64 else (
                rng.standard_normal(shape).astype(np.float32))
        return out


Step = Callable[[Fuzzer], Any]
STEPS: dict[str, Step] = {}


def step(f: Step) -> Step:
    STEPS[f.__name__] = f
    return f


def _tame(x: Tracer) -> Any:
    return o.tanh(x)


@step
def unary(f: Fuzzer) -> Any:
    names = ("tanh", "sigmoid", "relu", "neg", "abs", "gelu", "silu", "erf", "mish", "floor")
    name = names[f.below(len(names))]
    return getattr(o, name)(f.pick() if name != "floor" else f.inputs[0])


@step
def binary(f: Fuzzer) -> Any:
    name = ("add", "sub", "mul", "max", "min")[f.below(5)]
    x = f.pick()
    return _tame(getattr(o, name)(x, f.pick(x.ndim)))


@step
def literal(f: Fuzzer) -> Any:
    return (f.pick() * 0.5) + 0.25 if f.below(2) else 1.0 - f.pick()


@step
def choose(f: Fuzzer) -> Any:
    x = f.pick()
    return o.select(o.gt(x, 0.1), x, f.pick(x.ndim))


@step
def transpose(f: Fuzzer) -> Any:
    x = f.pick()
    return o.transpose(x, perm=tuple(map(int, f.rng.permutation(x.ndim))))


@step
def flatten(f: Fuzzer) -> Any:
    x = f.pick()
    keep = f.below(x.ndim) if x.ndim else 0
    rest: Any = 1
    for d in x.shape[keep:]:
        rest = rest * d
    return o.reshape(x, shape=(*x.shape[:keep], rest))


@step
def split(f: Fuzzer) -> Any:
    x = f.pick()
    axis = f.below(x.ndim)
    d = x.shape[axis]
    if not isinstance(d, int) or d % 2:
        return o.reshape(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))
    return o.reshape(x, shape=(*x.shape[:axis], 2, d // 2, *x.shape[axis + 1:]))


@step
def crop(f: Fuzzer) -> Any:
    x = f.pick()
    start, limit, strides = [], [], []
    for d in x.shape:
        n = d if isinstance(d, int) else 0
        a = f.below(n // 2 + 1) if n else 0
        start.append(a)
        limit.append(d if not n else max(a + 1, n - f.below(2)))
        strides.append(1 + f.below(2))
    return o.slice(x, start=tuple(start), limit=tuple(limit), strides=tuple(strides))


@step
def pad(f: Fuzzer) -> Any:
    x = f.pick()
    low = 0 if f.below(3) else -1
    lo, hi = ([int(v) for v in f.rng.integers(low, 3, x.ndim)] for _ in range(2))
    interior = tuple(map(int, f.rng.integers(0, 2, x.ndim))) if not f.below(3) else None
    if isinstance(x.shape[0], int):
        return o.pad(x, lo=tuple(lo), hi=tuple(hi), interior=interior, value=float(f.below(2)))
    return o.pad(x, lo=(0, *lo[1:]), hi=(0, *hi[1:]), value=0.5)


@step
def concat(f: Fuzzer) -> Any:
    x = f.pick()
    parts = [x, *(p for p in f.pool if p.ndim == x.ndim and f.below(2))][:3]
    return o.concat(*parts, axis=f.below(x.ndim))


@step
def join(f: Fuzzer) -> Any:
    x = f.pick()
    return o.stack(x, _tame(x), x, axis=f.below(x.ndim + 1))


@step
def flip(f: Fuzzer) -> Any:
    x = f.pick()
    return o.reverse(x, axes=(f.below(x.ndim),))


@step
def spread(f: Fuzzer) -> Any:
    x = f.pick()
    return o.broadcast(x, shape=(2, *x.shape)) if f.below(2) else o.broadcast(
        x, shape=tuple(3 if d == 1 else d for d in x.shape))


@step
def reduce(f: Fuzzer) -> Any:
    x = f.pick()
    names = ("reduce_sum", "reduce_max", "reduce_mean", "reduce_var", "reduce_min")
    axes = tuple(a for a in range(x.ndim) if f.below(2)) or (x.ndim - 1,)
    return _tame(getattr(o, names[f.below(5)])(x, axes=axes))


@step
def normalise(f: Fuzzer) -> Any:
    x = f.pick()
    axis = x.ndim - 1 if f.below(2) else f.below(x.ndim)
    return o.softmax(x, axis=axis) if f.below(2) else o.layer_norm(
        x, axes=(axis,), epsilon=0.1)


@step
def running(f: Fuzzer) -> Any:
    x = f.pick()
    kind = ("sum", "max", "min")[f.below(3)]
    return _tame(o.cumulative(x, kind=kind, axis=f.below(x.ndim), reverse=bool(f.below(2)),
                              exclusive=bool(f.below(2)) and kind == "sum"))


@step
def project(f: Fuzzer) -> Any:
    x = f.pick()
    n = (1, 5, 16, 33, 64)[f.below(5)]
    return _tame(o.linear(x, f.constant(n, x.shape[-1]), f.constant(n)))


@step
def product(f: Fuzzer) -> Any:
    x = f.pick()
    y = o.transpose(x, perm=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return _tame(o.matmul(x, y)) if f.below(2) else _tame(
        o.matmul(x, x, transpose_b=True) * 0.3)


@step
def transposed_product(f: Fuzzer) -> Any:
    x = f.pick()
    return _tame(o.matmul(x, f.constant(x.shape[-2], 20), transpose_a=True)) if (
        x.ndim > 1 and isinstance(x.shape[-2], int)) else None


@step
def convolve(f: Fuzzer) -> Any:
    x = f.pick(4)
    c = x.shape[1]
    k, groups = (1, 3)[f.below(2)], c if not f.below(3) else 1
    out = c if groups == c else (4, 16, 20)[f.below(3)]
    p = f.below(2)
    y = o.conv(x, f.constant(out, c // groups, k, k), groups=groups, padding=((p, p), (p, 1)),
               strides=(1 + f.below(2), 1))
    return _tame(y + f.constant(out, 1, 1))


@step
def winograd(f: Fuzzer) -> Any:
    x = f.pick(4)
    x = o.conv(x, f.constant(16, x.shape[1], 1, 1))
    return _tame(o.conv(x, f.constant(17, 16, 3, 3), padding=((1, 1), (1, 1))))


@step
def pool(f: Fuzzer) -> Any:
    x = f.pick(4)
    op = (o.max_pool, o.avg_pool)[f.below(2)]
    return op(x, window=(2, 3), strides=(1 + f.below(2), 1), padding=((1, 0), (1, 1)))


@step
def gather(f: Fuzzer) -> Any:
    x = f.pick()
    axis = max((a for a in range(x.ndim)), key=lambda a: x.shape[a] if isinstance(
        x.shape[a], int) else 0)
    if not isinstance(x.shape[axis], int) or x.shape[axis] < 3:
        return None
    at = o.reshape(f.indices, shape=(*f.indices.shape, 1))
    return o.gather(x, at, axes=(axis,))


@step
def scatter(f: Fuzzer) -> Any:
    x = f.pick()
    axis = f.below(x.ndim)
    if not isinstance(x.shape[axis], int) or x.shape[axis] < 3:
        return None
    at = f.builder.constant(np.array([[2], [0], [2]]))
    rest = tuple(d for a, d in enumerate(x.shape) if a != axis)
    y = f.pick(x.ndim)
    if y.ndim != x.ndim or not isinstance(y.shape[axis], int) or y.shape[axis] < 3:
        return None
    updates = o.gather(y, at, axes=(axis,))
    if updates.shape != (3, *rest):
        return None
    return _tame(o.scatter(x, at, updates, axes=(axis,), kind=("add", "set", "max")[f.below(3)]))


@step
def window(f: Fuzzer) -> Any:
    x = f.pick()
    sizes = tuple(max(1, d - 1) if isinstance(d, int) else d for d in x.shape)
    starts = [0 if not isinstance(d, int) else o.reshape(o.slice(
        f.builder.constant(np.arange(-1, 9)), start=(f.below(9),), limit=(9,),
        strides=(20,)), shape=()) for d in x.shape]
    y = o.dynamic_slice(x, *starts, sizes=sizes)
    return o.dynamic_update_slice(x, _tame(y), *starts) if f.below(2) else y


@step
def attend(f: Fuzzer) -> Any:
    x = f.pick(3)
    if x.ndim < 2 or not isinstance(x.shape[-1], int) or x.shape[-1] == 0:
        return None
    return o.attention(x, x, x, causal=bool(f.below(2)))


@step
def best(f: Fuzzer) -> Any:
    x = f.inputs[f.below(3)]
    axis = x.ndim - 1
    if not isinstance(x.shape[axis], int):
        return None
    return o.top_k(x, k=max(1, x.shape[axis] - 1), axis=axis, largest=bool(f.below(2)))[0]


@step
def half(f: Fuzzer) -> Any:
    to = (dtypes.float16, dtypes.bfloat16)[f.below(2)]
    return o.cast(o.cast(f.inputs[f.below(3)], dtype=to), dtype=dtypes.float32)


@step
def resize(f: Fuzzer) -> Any:
    x = f.pick(4)
    if x.ndim != 4 or not all(isinstance(d, int) for d in x.shape[2:]):
        return None
    return o.resize(x, sizes=(*x.shape[:2], 7, 5), mode="linear")
