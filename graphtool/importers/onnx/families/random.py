"""Random operators. All draw from one explicit state: the input `rng` and the output `rng`.

The state is that of graphtool.ops.random. The model's `seed` attributes are ignored: the caller
chooses the state, and one state gives the same numbers everywhere.
"""

from __future__ import annotations

from typing import Any

from graphtool.importers.onnx.driver.values import array_of, one
from graphtool.importers.onnx.families.elementwise import kept
from graphtool.importers.onnx.kit import DType, Refused, dtypes, element_type, o, onnx_op, product


def _float_type(x: Any, dtype: int | None) -> DType:
    return x.dtype if dtype is None else element_type(dtype)


@onnx_op("RandomUniform", fold=False)
def uniform(*, dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None,
            shape: Any, ctx: Any) -> Any:
    """`uniform` numbers in [low, high) of the given shape."""
    return ctx.drawn(o.uniform, shape=tuple(shape), dtype=element_type(dtype), low=low, high=high)


@onnx_op("RandomUniformLike", fold=False)
def uniform_like(x: Any, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0,
                 seed: float | None = None, ctx: Any) -> Any:
    """`uniform` numbers in [low, high) in x's shape."""
    return ctx.drawn(o.uniform, shape=tuple(x.shape), dtype=_float_type(x, dtype), low=low,
                     high=high)


@onnx_op("RandomNormal", fold=False)
def normal(*, dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None,
           shape: Any, ctx: Any) -> Any:
    """`normal` numbers of the given mean and deviation, in the given shape."""
    return ctx.drawn(o.normal, shape=tuple(shape), dtype=element_type(dtype), mean=mean, std=scale)


@onnx_op("RandomNormalLike", fold=False)
def normal_like(x: Any, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                seed: float | None = None, ctx: Any) -> Any:
    """`normal` numbers of the given mean and deviation, in x's shape."""
    return ctx.drawn(o.normal, shape=tuple(x.shape), dtype=_float_type(x, dtype), mean=mean,
                     std=scale)


@onnx_op("Bernoulli", fold=False)
def bernoulli(x: Any, *, dtype: int | None = None, seed: float | None = None, ctx: Any) -> Any:
    """1 with probability x, else 0: a `uniform` number below x."""
    draw = ctx.drawn(o.uniform, shape=tuple(x.shape), dtype=x.dtype)
    return (draw < x).cast(_float_type(x, dtype))


@onnx_op("Multinomial", fold=False)
def multinomial(x: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None,
                ctx: Any) -> Any:
    """Class indices [B, samples] drawn by the log-odds x [B, C].

    An index is the number of cumulative probabilities that are not above a `uniform` number.
    """
    rows, classes = x.shape
    below = o.cumulative(o.softmax(x, axis=1), kind="sum", axis=1)
    draw = ctx.drawn(o.uniform, shape=(rows, sample_size, 1), dtype=x.dtype)
    passed = (below.reshape((rows, 1, classes)) <= draw).cast(dtypes.int64)
    index = o.reduce_sum(passed, axes=(2,)).reshape((rows, sample_size))
    if isinstance(classes, int):
        index = o.min(index, classes - 1)  # rounding may leave the last sum below 1
    return index.cast(element_type(dtype))


@onnx_op("Dropout", since=12, fold=False)
def dropout(x: Any, ratio: Any = None, training: Any = None, *, seed: int | None = None,
            ctx: Any) -> Any:
    """In training `dropout` with a mask drawn at random; otherwise x itself and a mask of ones."""
    _single(ratio, "ratio")
    _single(training, "training_mode")
    if any(v is not None and array_of(v) is None for v in (ratio, training)):
        return _by_computed(x, ratio, training, ctx)
    rate = 0.5 if ratio is None else ratio
    if training is not None and one(training, "training_mode"):
        p = rate if isinstance(rate, float) else float(one(rate, "the ratio"))
        if p:
            return list(ctx.drawn(o.dropout, x, p=p))[:ctx.outputs]
    return kept(x, ctx)


def _single(x: Any, name: str) -> None:
    """Raises Refused unless the operand is left out or has one element."""
    array = array_of(x)
    shape = () if x is None else x.shape if array is None else array.shape
    if product(shape) != 1:
        raise Refused(f"the {name} of Dropout must be one number, not of the shape {[*shape]}")


def _by_computed(x: Any, ratio: Any, training: Any, ctx: Any) -> list[Any]:
    """Dropout whose ratio or mode is computed at run time."""
    if training is None or (array_of(training) is not None and not one(training, "the mode")):
        return [*kept(x, ctx)] if ctx.outputs > 1 else [x]
    draw = ctx.drawn(o.uniform, shape=tuple(x.shape), dtype=dtypes.float32)
    rate = draw.number(0.5) if ratio is None else ratio.cast(dtypes.float32).reshape(())
    mask = draw >= rate
    if array_of(training) is None:
        flag = training.reshape(())
        mask, rate = mask | ~flag, o.select(flag, rate, 0.0)
    y = o.select(mask, x / (1.0 - rate).cast(x.dtype), 0.0)
    return [y, mask][:ctx.outputs]
