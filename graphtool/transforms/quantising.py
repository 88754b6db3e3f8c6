"""Quantises a whole module: folds, calibrates, balances, rounds, and corrects.

What a layer may become is one `Chosen` for each form; which of them are taken is decided elsewhere
(tune/mix.py), or all are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from graphtool import dtypes, passes
from graphtool.errors import InputError, UsageError
from graphtool.ir.graph import Module, Node, Value, is_constant, is_parameter
from graphtool.passes.quantise import check_block, why_not
from graphtool.passes.quantise.activations import stored_activations
from graphtool.passes.quantise.balance import aware, balanced, smoothing
from graphtool.passes.quantise.calibrate import Batch, Calibration, calibrated
from graphtool.passes.quantise.compensate import compensated
from graphtool.passes.quantise.grids import Grid, Method, chosen
from graphtool.passes.quantise.layers import Layer, layers, named, pairs, reading
from graphtool.passes.quantise.ports import NO_PORTS, Ports, PortType, ports, with_bytes
from graphtool.passes.quantise.rewrite import LayerChoice, rewritten
from graphtool.passes.quantise.statistics import Norms, corrected, norms
from graphtool.passes.quantise.weights import BITS, Beside, Blocks, Form, Stored, stored

Array = np.ndarray[Any, Any]
Rounding = Literal["nearest", "gptq", "awq"]
ROUNDINGS: tuple[Rounding, ...] = ("nearest", "gptq", "awq")
_FOLDED = "dce,simplify,fold,freeze,simplify,fold,dce"  # batch norms are in the weights then


@dataclass(frozen=True)
class Quantisation:
    """How to quantise.

    `forms`: what a layer may become, the first that it can by default. `method`: how ranges of
    activations are chosen. `symmetric`: activations without a zero point. `block`: inputs with one
    scale, for weights in blocks. `rounding`: of the weights of products. `smooth`: the strength of
    the balance between activations and weights, 0 for none. `correct_bias`: biases make up for what
    the mean of a layer's result loses. `correct_norms`: the results of batch norms keep the mean
    and the variance of each channel. `stored`: static layers put every activation that is stored
    between kernels into 8 bits, also if no layer reads it. `io`: the type of the float32 inputs and
    outputs of the model; bytes are steps of a grid, which `meta["grids"]` has.
    """

    forms: tuple[Form, ...] = ("static",)
    method: Method = "minmax"
    percentile: float = 99.99
    symmetric: bool = False
    block: int = 32
    rounding: Rounding = "nearest"
    smooth: float = 0.0
    correct_bias: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    correct_norms: bool = False
    stored: bool = False
    io: PortType = "float"

    @property
    def needs_data(self) -> bool:
        """Whether there must be examples."""
        grids = "static" in self.forms or self.stored or self.io != "float"
        return grids or self.rounding != "nearest" or bool(self.smooth) or (
            self.correct_bias or self.correct_norms)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A module ready to be quantised: folded, and balanced where that was wanted.

    `forms` has what each layer may become, `left` why a layer stays as it is, `trained` the names
    of the parameters of the original; `norms` the batch norms, if they are to be corrected.
    """

    module: Module
    forms: Mapping[Layer, Mapping[Form, LayerChoice]]
    left: Mapping[Layer, str]
    trained: frozenset[str]
    seen: Calibration | None = None
    norms: Norms | None = None
    stored: Mapping[Value, Grid] = field(default_factory=dict)
    ports: Ports = NO_PORTS

    def with_layers(self, chosen: Sequence[LayerChoice]) -> Module:
        """The module with these layers quantised."""
        graph = rewritten(self.module.graph, chosen, self.trained)
        return replace(self.module, graph=graph)

    def finished(self, chosen: Sequence[LayerChoice]) -> Module:
        """The same, with all stored activations on grids and with batch norms corrected, where that
        was wanted."""
        chosen = self.ports.agreed(self.module.graph, chosen)
        if self.norms is not None and self.norms.axes and chosen:
            module = corrected(self.module, chosen, self.trained, self.norms, self.stored)
        else:
            graph = rewritten(self.module.graph, chosen, self.trained, self.stored)
            module = replace(self.module, graph=graph)
        return with_bytes(module, self.module.graph, self.ports, chosen)


def prepared(module: Module, settings: Quantisation, data: Sequence[Batch] = ()) -> Prepared:
    """Everything that is to be known before layers are chosen.

    Raises UsageError GT0643 for a bad block, GT0644 if examples are needed and missing, InputError
    GT0640 for a pattern that fits no layer, GT0645 if there is nothing to quantise.
    """
    for form in settings.forms:
        check_block(form, settings.block)
    if settings.needs_data and not data:
        raise UsageError("GT0644", "this needs examples", hint="--calibrate data.npz, or a form "
                         "that needs none: --form dynamic, int8, int4, int2, bfloat16 or float16")
    trained = frozenset(n.outputs[0].hint for n in module.graph.nodes if is_parameter(n))
    folded = passes.run(module, _FOLDED)
    layers = _layers(folded, settings)
    if not layers:
        raise InputError("GT0645", "the model has no layer to quantise",
                         hint="a layer is a convolution, a product or a table with a constant "
                              "float32 weight")
    wanted = named(layers, settings.only, settings.skip)
    seen = None
    if settings.needs_data:
        grams = settings.rounding == "gptq"
        seen = calibrated(folded, wanted, data, settings.method, grams)
        factors = _factors(settings, seen, wanted)
        if factors:
            names = {layer.name for layer in wanted}
            folded = replace(folded, graph=balanced(folded.graph, factors))
            layers = _layers(folded, settings)
            wanted = [layer for layer in layers if layer.name in names]
            seen = calibrated(folded, wanted, data, settings.method, grams)
    more = _on_grids(folded, wanted, settings, data)
    forms: dict[Layer, dict[Form, LayerChoice]] = {}
    left = {layer: "not asked for" for layer in layers if layer not in wanted}
    for layer in wanted:
        why = [why_not(layer, form) for form in settings.forms]
        forms[layer] = {form: _chosen(layer, form, settings, seen)
                        for form, no in zip(settings.forms, why, strict=True) if not no}
        if not forms[layer]:
            left[layer] = why[0]
            del forms[layer]
    found_norms = norms(module, folded, data) if settings.correct_norms else None
    return Prepared(folded, forms, left, trained, seen, found_norms, more,
                    ports(folded, settings.io, _seen(folded, settings, data)))


def _layers(module: Module, settings: Quantisation) -> list[Layer]:
    """The layers of the module; products of two activations only where they can be static."""
    more = pairs(module.graph) if "static" in settings.forms else []
    return [*layers(module.graph), *more]


def _on_grids(module: Module, wanted: Sequence[Layer], settings: Quantisation,
              data: Sequence[Batch]) -> dict[Value, Grid]:
    """The grids of the activations that are stored although none of the layers reads them."""
    if not settings.stored or "static" not in settings.forms:
        return {}
    return _grids(module, stored_activations(module.graph, wanted), settings, data)


def _seen(module: Module, settings: Quantisation, data: Sequence[Batch]) -> dict[Value, Grid]:
    """The grids of the inputs and outputs in float32, if these are to be bytes."""
    ends = dict.fromkeys((*module.graph.inputs, *module.graph.outputs))
    return {} if settings.io == "float" else _grids(
        module, [v for v in ends if v.type.dtype is dtypes.float32], settings, data)


def _grids(module: Module, values: Sequence[Value], settings: Quantisation,
           data: Sequence[Batch]) -> dict[Value, Grid]:
    """A grid for each value, by the examples."""
    readings = [reading(v) for v in values]
    seen = calibrated(module, readings, data, settings.method)
    return {r.x: chosen(seen.activations[r, r.x], settings.method, settings.symmetric,
                        settings.percentile) for r in readings}


def _factors(settings: Quantisation, seen: Calibration, wanted: Sequence[Layer]) -> dict[
        Layer, Array]:
    """What activations are divided by."""
    out: dict[Layer, Array] = {}
    if settings.smooth:
        out.update(smoothing(seen, wanted, settings.smooth))
    bits = [BITS[f] for f in settings.forms if f in BITS]
    if settings.rounding == "awq" and bits:
        out.update(aware(seen, wanted, min(bits), settings.block))
    return out


def _chosen(layer: Layer, form: Form, settings: Quantisation,
            seen: Calibration | None) -> LayerChoice:
    """The layer in one form."""
    grid = None
    if form == "static":
        assert seen is not None
        symmetric = settings.symmetric or layer.other is not None
        grids = [chosen(seen.activations[layer, v], settings.method, symmetric,
                        settings.percentile) for v in layer.read]
        grid = grids[0]
        if layer.other is not None:
            return LayerChoice(layer, form, Beside(grids[1]), grid)
    kept = _rounded(layer, form, settings, seen)
    shift = None
    if settings.correct_bias and seen is not None and layer.kind != "table":
        shift = _shift(layer, kept, seen)
    return LayerChoice(layer, form, kept, grid, shift)


def _rounded(layer: Layer, form: Form, settings: Quantisation, seen: Calibration | None) -> Stored:
    integers = form in BITS or form in ("static", "dynamic")
    if settings.rounding == "gptq" and integers and layer.deep:
        assert seen is not None
        gram = seen.inputs[layer].gram
        assert gram is not None
        return compensated(layer, form, settings.block, gram)
    return stored(layer, form, settings.block)


def _shift(layer: Layer, kept: Stored, seen: Calibration) -> Array:
    """What the mean of each output channel loses by rounding the weight: Σ (w − ŵ)·mean(x).

    An output of a transposed convolution sees a share of the taps; all outputs together see each
    tap equally often.
    """
    mean = seen.inputs[layer].mean
    if isinstance(kept, Blocks):
        lost = (layer.rows - kept.real).reshape(len(layer.rows), -1, len(mean))
        return np.asarray(lost.sum(1) @ mean)
    if layer.kind == "product":
        real = kept.real if kept.real.shape == layer.rows.shape else kept.real.T
        return np.asarray((layer.rows - real) @ mean)
    lost = (layer.w - kept.real).sum(axis=tuple(range(2, layer.w.ndim)))
    lost = lost / np.prod(layer.node.attrs["lhs_dilation"] or 1)
    groups = layer.node.attrs["groups"]
    per = mean.reshape(groups, -1)
    each = lost.reshape(groups, -1, lost.shape[1])
    return np.asarray(np.einsum("goc,gc->go", each, per).reshape(-1))


def all_layers(ready: Prepared) -> list[LayerChoice]:
    """Each layer in the first form that it can have."""
    return [next(iter(forms.values())) for forms in ready.forms.values()]


def quantised(module: Module, settings: Quantisation, data: Sequence[Batch] = ()) -> Module:
    """The module with every layer in the first form that it can have."""
    ready = prepared(module, settings, data)
    return ready.finished(all_layers(ready))


def float_bytes(module: Module) -> int:
    """Bytes of all constants of the module."""
    def size(n: Node) -> int:
        return int(n.attrs["data"].nbytes) if is_constant(n) else 0
    return sum(map(size, module.graph.nodes))
