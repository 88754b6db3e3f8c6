"""Finds composites that an exporter took apart; their own decompositions are the patterns where
possible.

It needs simplified graphs. Sums may round in another order (class reassociated). Attention is
approximate if a mask hides whole rows, because the result then follows the op's own definition.
"""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.assume import Assumes
from graphtool.ir.graph import Graph
from graphtool.ir.op import Op
from graphtool.kernels.choice.rules import Rules, permitted
from graphtool.ops.common import broadcast_shapes
from graphtool.passes.recognise import attention
from graphtool.rewrite.engine import Rule, apply_rules, array_of, rule, stated
from graphtool.rewrite.journal import Journal
from graphtool.rewrite.patterns import unrounded


def recognise(graph: Graph, *, numerics: str = "approximate",
              journal: Journal | None = None, rules: Rules | None = None) -> Graph:
    """The graph with groups of nodes replaced by the composites that they compute.

    `numerics` is the loosest class of rule that may fire.
    """
    return apply_rules(graph, RULES, permitted(rules, numerics, "recognise"), journal,
                       unrounded)


def _whole(op: Op, *operands: Any, **attrs: Any) -> Any:
    """The decomposition of an op, used as a pattern."""
    assert op.decompose is not None
    return op.decompose(*operands, **attrs)


def _once(y: Any) -> Any:
    """The composite y, which rounds 16-bit numbers once; its parts round after each op."""
    return Assumes(y, "reassociated", "16-bit numbers are rounded once, not after each op") if (
        y.dtype.is_narrow) else y


# ---- activations -------------------------------------------------------------------------------

@rule(lambda x: _whole(o.silu, x), may="reassociated")
def silu(x: Any) -> Any:
    """x · σ(x) = silu(x)"""
    return _once(o.silu(x))


@rule(lambda x: _whole(o.relu, x))
def relu(x: Any) -> Any:
    """(x ≤ 0 ? 0 : x) = relu(x)"""
    return o.relu(x)


_ROOT_2, _ROOT_HALF, _ROOT_2_PI = 2**0.5, 0.5**0.5, 0.7978845608028654
_HALVES = (  # ½·x·u in the forms that authors and exporters write
    lambda x, u: (x * 0.5) * u,
    lambda x, u: x * (u * 0.5),
    lambda x, u: (x * u) * 0.5,
)
_CDFS = (lambda x: o.erf(x / _ROOT_2) + 1, lambda x: o.erf(x * _ROOT_HALF) + 1)
_CUBES = (lambda x: o.pow(x, 3), lambda x: x * x * x, lambda x: x * (x * x))
_INNERS = (
    *(lambda x, f=f: (x + f(x) * 0.044715) * _ROOT_2_PI for f in _CUBES),
    lambda x: x * _ROOT_2_PI * (x * x * 0.044715 + 1),
    lambda x: x * (x * x * (0.044715 * _ROOT_2_PI) + _ROOT_2_PI),
)


def gelu_erf(x: Any) -> Any:
    """½·x·(1 + erf(x/√2))"""
    return o.gelu(x)


def gelu_tanh(x: Any) -> Any:
    """½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))"""
    return o.gelu(x, approximate="tanh")


def _gelus() -> list[Rule]:
    """The rules of all spellings. A lambda's own parameters are the variables of its pattern."""
    def spelled(half: Any, inner: Any, fn: Any) -> Rule:
        return rule(lambda x: half(x, inner(x)), needs="reassociated")(fn)
    return [spelled(h, c, gelu_erf) for h in _HALVES for c in _CDFS] + [
        spelled(h, lambda x, i=i: o.tanh(i(x)) + 1, gelu_tanh) for h in _HALVES for i in _INNERS]


# ---- softmax and norms -------------------------------------------------------------------------

@rule(lambda x, a: _whole(o.softmax, x, axis=a), may="reassociated")
def softmax(x: Any, a: Any) -> Any:
    """exp(x − max x) / Σ exp(x − max x) over axis a = softmax(x)"""
    return _once(o.softmax(x, axis=a))


@rule(lambda x, a: _whole(o.log_softmax, x, axis=a), may="reassociated")
def log_softmax(x: Any, a: Any) -> Any:
    """x − max x − log Σ exp(x − max x) over axis a = log_softmax(x)"""
    return _once(o.log_softmax(x, axis=a))


def _deviation(x: Any, a: Any, e: Any) -> tuple[Any, Any]:
    centred = x - o.reduce_mean(x, axes=a)
    return centred, o.reduce_mean(centred * centred, axes=a) + e


def _over_root(centred: Any, variance: Any) -> Any:
    return centred / o.sqrt(variance)


@rule(lambda x, a, e: _whole(o.layer_norm, x, axes=a, epsilon=e), may="reassociated")
def layer_norm(x: Any, a: Any, e: Any) -> Any:
    """(x − mean x) · 1/√(var x + e) over axes a = layer_norm(x), if e is a number"""
    return _once(o.layer_norm(x, axes=a, epsilon=e)) if isinstance(e, float) else None


@rule(lambda x, a, e: _over_root(*_deviation(x, a, e)), needs="reassociated")
def layer_norm_by_root(x: Any, a: Any, e: Any) -> Any:
    """(x − mean x) / √(var x + e) over axes a = layer_norm(x), if e is a number"""
    return o.layer_norm(x, axes=a, epsilon=e) if isinstance(e, float) else None


@rule(lambda x, a, e: _whole(o.rms_norm, x, axes=a, epsilon=e), may="reassociated")
def rms_norm(x: Any, a: Any, e: Any) -> Any:
    """x · 1/√(mean x² + e) over axes a = rms_norm(x), if e is a number"""
    return _once(o.rms_norm(x, axes=a, epsilon=e)) if isinstance(e, float) else None


@rule(lambda x, a, e: x / o.sqrt(o.reduce_mean(x * x, axes=a) + e), needs="reassociated")
def rms_norm_by_root(x: Any, a: Any, e: Any) -> Any:
    """x / √(mean x² + e) over axes a = rms_norm(x), if e is a number"""
    return o.rms_norm(x, axes=a, epsilon=e) if isinstance(e, float) else None


@rule(lambda x, s, a, e: o.layer_norm(x, axes=a, epsilon=e) * s,
      may="reassociated", once=True)
def layer_norm_scale(x: Any, s: Any, a: Any, e: Any) -> Any:
    """layer_norm(x) · s = layer_norm(x, s), if s is a constant that broadcasts to x"""
    return _once(o.layer_norm(x, s, axes=a, epsilon=e)) if _is_affine(s, x) else None


@rule(lambda x, s, b, a, e: o.layer_norm(x, s, None, axes=a, epsilon=e) + b,
      may="reassociated", once=True)
def layer_norm_bias(x: Any, s: Any, b: Any, a: Any, e: Any) -> Any:
    """layer_norm(x, s) + b = layer_norm(x, s, b), if b is a constant that broadcasts to x"""
    return _once(o.layer_norm(x, s, b, axes=a, epsilon=e)) if _is_affine(b, x) else None


@rule(lambda x, s, a, e: o.rms_norm(x, axes=a, epsilon=e) * s,
      may="reassociated", once=True)
def rms_norm_scale(x: Any, s: Any, a: Any, e: Any) -> Any:
    """rms_norm(x) · s = rms_norm(x, s), if s is a constant that broadcasts to x"""
    return _once(o.rms_norm(x, s, axes=a, epsilon=e)) if _is_affine(s, x) else None


@rule(lambda x, s, b, e, i, a: o.reshape(o.instance_norm(
    o.reshape(x, shape=i), s, b, epsilon=e), shape=a), once=True)
def group_norm(x: Any, s: Any, b: Any, e: Any, i: Any, a: Any) -> Any:
    """Groups of channels are normalised as the channels of a reshaped image, which is reshaped
    back."""
    n, groups, *_ = i
    if tuple(a) != x.shape or x.ndim < 3 or n != x.shape[0] or not isinstance(groups, int) or (
            not isinstance(x.shape[1], int) or groups < 1 or x.shape[1] % groups):
        return None
    vectors = [_of_groups(v, x.shape[1] // groups) for v in (s, b)]
    return o.group_norm(x, *vectors, groups=groups, epsilon=e)


def _of_groups(v: Any, channels: int) -> Any:
    """A vector of the groups, repeated to a vector of all channels."""
    each = o.broadcast(o.reshape(v, shape=(*v.shape, 1)), shape=(*v.shape, channels))
    return o.reshape(each, shape=(v.shape[0] * channels,))


def _is_affine(v: Any, x: Any) -> bool:
    """Whether v is a constant, trainable or not, that does not broadcast x to a larger shape."""
    return array_of(v, params=True) is not None and v.dtype is x.dtype and (
        broadcast_shapes(v.shape, x.shape) == x.shape)


RULES = [*_gelus(), *stated(__name__), *stated(attention.__name__)]
