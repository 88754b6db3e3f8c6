"""Normalisation, softmax, attention, recurrent layers and losses: one ONNX operator each."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.exporters.onnx.kit import Node, Ref, Writer, dtypes, form, o, takes
from graphtool.exporters.onnx.registry import named
from graphtool.front.names import written
from graphtool.symbolic import Dim


def vector(w: Writer, x: Ref | None, value: float, dims: tuple[Dim, ...], dtype: DType) -> Any:
    """x, or a constant of `value` in the shape `dims` if x is left out."""
    if x is not None:
        return x
    takes(all(isinstance(d, int) for d in dims))
    return w.array(np.full(dims, value, dtype.numpy))


@form(*written("onnx", "axis"))
def softmax(w: Writer, node: Node, x: Ref) -> Any:
    """Softmax or LogSoftmax along one axis."""
    takes(bool(x.shape))
    return w(named(node.op.name, x.type.dtype).name, x, axis=node.attrs["axis"])


# ---- normalisation -----------------------------------------------------------------------------

def _last_axes(x: Ref, axes: tuple[int, ...], *affine: Ref | None) -> int:
    """The first of the axes; declined unless they run to the last axis and fit scale and bias."""
    rank = len(x.shape)
    positive = sorted(a % rank for a in axes)
    takes(bool(positive) and positive == list(range(positive[0], rank)))
    takes(all(v is None or v.shape == x.shape[positive[0]:] for v in affine))
    return positive[0]


@form("layer_norm")
def layer_norm(w: Writer, node: Node, x: Ref, scale: Ref | None = None,
               bias: Ref | None = None) -> Any:
    """LayerNormalization; declined unless the axes are the last ones."""
    axis = _last_axes(x, node.attrs["axes"], scale, bias)
    ones = vector(w, scale, 1, x.shape[axis:], x.type.dtype)
    return w("LayerNormalization", x, ones, bias, axis=axis, epsilon=node.attrs["epsilon"])


@form("rms_norm")
def rms_norm(w: Writer, node: Node, x: Ref, scale: Ref | None = None) -> Any:
    """RMSNormalization; declined unless the axes are the last ones."""
    axis = _last_axes(x, node.attrs["axes"], scale)
    ones = vector(w, scale, 1, x.shape[axis:], x.type.dtype)
    return w("RMSNormalization", x, ones, axis=axis, epsilon=node.attrs["epsilon"])


@form("group_norm")
def group_norm(w: Writer, node: Node, x: Ref, scale: Ref | None = None,
               bias: Ref | None = None) -> Any:
    """GroupNormalization; channels at axis 1, at least 3 axes."""
    return _by_channels(w, "GroupNormalization", node, x, scale, bias,
                        num_groups=node.attrs["groups"])


@form("instance_norm")
def instance_norm(w: Writer, node: Node, x: Ref, scale: Ref | None = None,
                  bias: Ref | None = None) -> Any:
    """InstanceNormalization; channels at axis 1, at least 3 axes."""
    return _by_channels(w, "InstanceNormalization", node, x, scale, bias)


def _by_channels(w: Writer, operator: str, node: Node, x: Ref, scale: Ref | None,
                 bias: Ref | None, **attributes: Any) -> Any:
    """A normalisation with a scale and a bias for each channel, ones and zeros if left out."""
    takes(len(x.shape) >= 3)
    channels, dtype = x.shape[1:2], x.type.dtype
    return w(operator, x, vector(w, scale, 1, channels, dtype), vector(w, bias, 0, channels, dtype),
             epsilon=node.attrs["epsilon"], **attributes)


@form("batch_norm")
def batch_norm(w: Writer, node: Node, x: Ref, scale: Ref | None, bias: Ref | None, mean: Ref,
               var: Ref) -> Any:
    """BatchNormalization by running statistics; channels at axis 1."""
    takes(len(x.shape) >= 2 and node.attrs["axis"] % len(x.shape) == 1)
    channels, dtype = x.shape[1:2], x.type.dtype
    momentum = node.attrs["momentum"]  # ONNX has no form for the mean over all batches
    more = {} if momentum is None else {"momentum": 1 - momentum}
    return w("BatchNormalization", x, vector(w, scale, 1, channels, dtype),
             vector(w, bias, 0, channels, dtype), mean, var, epsilon=node.attrs["epsilon"], **more)


@form("lrn")
def lrn(w: Writer, node: Node, x: Ref) -> Any:
    """LRN of a [N, C, H, W] tensor."""
    takes(len(x.shape) == 4)
    return w("LRN", x, **node.attrs)


# ---- transformers ------------------------------------------------------------------------------

@form("attention")
def attention(w: Writer, node: Node, q: Ref, k: Ref, v: Ref, mask: Ref | None = None) -> Any:
    """Attention, which takes 4 axes; operands with fewer become [1, heads, rows, depth]."""
    rank = len(q.shape)
    attrs = {k: node.attrs[k] for k in ("causal", "scale", "softcap")}
    takes(rank <= 4 and (mask is None or len(mask.shape) <= 4))
    if rank < 4:
        return w.restate(lambda *xs: _four(*xs, attrs=attrs), [q, k, v, mask])
    scores = (q.shape[-2], k.shape[-2])
    if mask is not None and mask.shape[-2:] != scores:  # onnxruntime wants them spelt out
        to = (*mask.shape[:-2], *scores)
        mask, = w.restate(lambda m: o.broadcast(m, shape=to), [mask])
    return w("Attention", q, k, v, mask, is_causal=int(attrs["causal"]) or None,
             scale=attrs["scale"], softcap=attrs["softcap"] or None)


def _four(q: Any, k: Any, v: Any, mask: Any = None, *, attrs: Any) -> Any:
    more = 4 - q.ndim
    q, k, v = (o.reshape(x, shape=(*(1,) * more, *x.shape)) for x in (q, k, v))
    y = o.attention(q, k, v, mask, **attrs)
    return o.reshape(y, shape=y.shape[more:])


@form("rotary_embedding")
def rotary_embedding(w: Writer, node: Node, x: Ref, cos: Ref, sin: Ref) -> Any:
    """RotaryEmbedding, cos and sin as [batch, steps, half]; x has 4 axes."""
    takes(len(x.shape) == 4 and x.type.dtype is not dtypes.float64)
    batch, _, steps, depth = x.shape
    lead, half = (1,) * (4 - len(cos.shape)) + cos.shape[:-1], cos.shape[-1]
    takes(lead[1] == 1)
    to = (batch, steps, half)

    def cache(c: Any) -> Any:
        flat = o.reshape(c, shape=(lead[0], lead[2], half))
        return o.broadcast(flat, shape=to)
    caches = [w.restate(cache, [c])[0] for c in (cos, sin)]
    turned = half * 2
    return w("RotaryEmbedding", x, *caches, interleaved=int(node.attrs["interleaved"]) or None,
             rotary_embedding_dim=None if turned == depth else turned)


# ---- recurrent layers: the layouts are ONNX's own ----------------------------------------------

def _recurrent(w: Writer, node: Node, op: str, inputs: list[Any], outputs: int,
               **attrs: Any) -> Any:
    hidden = inputs[2].shape[2]
    takes(all(d != 0 for x in inputs if isinstance(x, Ref) for d in x.shape))
    return w(op, *inputs, outputs=outputs, direction=node.attrs["direction"], hidden_size=hidden,
             clip=node.attrs["clip"] or None, **attrs)


@form("lstm")
def lstm(w: Writer, node: Node, x: Ref, k: Ref, r: Ref, bias: Ref | None = None,
         h0: Ref | None = None, c0: Ref | None = None, peephole: Ref | None = None) -> Any:
    """LSTM; weights and gates have ONNX's layout already."""
    return _recurrent(w, node, "LSTM", [x, k, r, bias, None, h0, c0, peephole], 3)


@form("gru")
def gru(w: Writer, node: Node, x: Ref, k: Ref, r: Ref, bias: Ref | None = None,
        h0: Ref | None = None) -> Any:
    """GRU; weights and gates have ONNX's layout already."""
    return _recurrent(w, node, "GRU", [x, k, r, bias, None, h0], 2,
                      linear_before_reset=int(node.attrs["linear_before_reset"]))


@form("rnn")
def rnn(w: Writer, node: Node, x: Ref, k: Ref, r: Ref, bias: Ref | None = None,
        h0: Ref | None = None) -> Any:
    """RNN with tanh or relu; weights have ONNX's layout already."""
    both = 2 if node.attrs["direction"] == "bidirectional" else 1
    kind = {"tanh": "Tanh", "relu": "Relu"}[node.attrs["activation"]]
    return _recurrent(w, node, "RNN", [x, k, r, bias, None, h0], 2, activations=[kind] * both)


# ---- losses ------------------------------------------------------------------------------------

@form("nll_loss", "cross_entropy")
def nll_loss(w: Writer, node: Node, x: Ref, labels: Ref, weight: Ref | None = None) -> Any:
    """NegativeLogLikelihoodLoss or SoftmaxCrossEntropyLoss; classes at axis 1."""
    attrs = node.attrs
    takes(attrs["axis"] % len(x.shape) == 1 and len(x.shape) >= 2)
    takes(labels.type.dtype in (dtypes.int64, dtypes.int32) and not attrs.get("label_smoothing"))
    op = "NegativeLogLikelihoodLoss" if node.op.name == "nll_loss" else "SoftmaxCrossEntropyLoss"
    return w(op, x, labels, weight, reduction=attrs["reduction"],
             ignore_index=attrs["ignore_index"])
