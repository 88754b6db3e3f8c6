"""Captures a live nn.Module by torch.export, directly or after a torch.fx trace.

This runs the model's Python. Ops for which we have a kernel or a stable form are not decomposed.
"""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.distributions import Distribution
from torch.export import ExportedProgram, default_decompositions

from graphtool.errors import GraphtoolError, Unsupported, UnsupportedError, UsageError
from graphtool.front.assumptions import ROUNDS, Bounds
from graphtool.importers.python_source import root_of
from graphtool.importers.torch.driver.call_arguments import as_called, input_names, placed
from graphtool.importers.torch.driver.captured import CapturedProgram, ComplexType, GraphInput
from graphtool.importers.torch.driver.exported import read as read_exported
from graphtool.importers.torch.driver.fxtrace import places_of, traced
from graphtool.importers.torch.driver.grad_modes import annotate, hooked, is_decomposed, watched
from graphtool.importers.torch.driver.live import CHECKPOINT, GRADIENT, held
from graphtool.importers.torch.driver.open_dims import OpenDims
from graphtool.importers.torch.driver.patches import (
    annotated,
    averaging,
    fakes,
    inner_gradients,
    pooling,
)
from graphtool.importers.torch.driver.provenance import clean_path, failure
from graphtool.importers.torch.torchscript.modules import ScriptReplay
from graphtool.ir.graph import TensorType

_TORCH = root_of(torch.__file__)

KEEP = (
    "scaled_dot_product_attention", "lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input",
    "layer_norm", "rms_norm", "group_norm", "instance_norm", "gelu", "silu", "hardswish",
    "hardsigmoid", "mish", "elu", "selu", "celu", "leaky_relu", "prelu", "softplus", "log_sigmoid",
    "softsign", "softmax.int", "log_softmax.int", "_softmax", "_log_softmax",
    "upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec",
    "upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec",
    "upsample_bicubic2d.vec", "_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec",
    "_upsample_nearest_exact3d.vec", "_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d.input",
    "conv_transpose3d.input", "convolution", "linear", "embedding", "matmul", "max_pool1d",
    "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d",
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "pixel_shuffle", "pixel_unshuffle", "logsumexp",
    "linalg_vector_norm", "glu", "index_add", "index_copy", "tril", "triu", "sinc", "xlogy",
    "special_xlog1py", "special_entr", "binary_cross_entropy", "huber_loss", "smooth_l1_loss",
    "std", "std_mean", "logaddexp", "hypot", "logit",
)


def program(model: Any, args: tuple[Any, ...], how: str, dynamic: Mapping[str, Bounds],
            names: Sequence[str], kwargs: Mapping[str, Any]) -> CapturedProgram:
    """The captured program; one of torch.export as it is, with the dims that it has.

    Raises UsageError GT1104, UnsupportedError GT1102.
    """
    if isinstance(model, ExportedProgram):
        return _captured_before(model, dynamic, names)
    if isinstance(model, torch.jit.ScriptModule):
        if how != "export":
            raise UsageError("GT1104", f"a scripted module cannot be captured by {how}",
                             hint="leave --capture out: its own code is read")
        model = ScriptReplay(model)
    if not isinstance(model, nn.Module):
        raise UsageError("GT1104", f"expected an nn.Module, got {type(model).__name__}")
    if how not in ("export", "fx"):
        raise UsageError("GT1104", f"unknown capture {how!r}", hint="export or fx")
    args, kwargs = placed(model, args, kwargs)
    if how == "fx" and kwargs:
        raise UsageError("GT1104", f"the input {next(iter(kwargs))} can only be given by its "
                         "name, which the capture fx does not support", hint="--capture export")
    inputs = list(names) or input_names(model, args, kwargs)
    given = (*args, *kwargs.values())
    if len(inputs) != len(given) and names:
        raise UsageError("GT1104", f"{len(names)} names for {len(given)} inputs")
    opened = OpenDims(given, inputs, dynamic)
    hooks, state = hooked(model), model.state_dict()
    mode = "training" if model.training else "inference"
    with (quiet(), unchecked(), annotated(), watched(), inner_gradients(), averaging(),
          pooling(), sequences(), fakes()):
        if how == "fx":
            model = traced(model, len(args), _TORCH)
        for last in (*[False] * ROUNDS, True):
            given, shapes = opened.samples(given)
            args, kwargs = given[:len(args)], dict(zip(kwargs, given[len(args):], strict=True))
            try:
                exported = _exported(model, args, kwargs,
                                     shapes and as_called(model, shapes, kwargs))
                break
            except UnsupportedError as error:
                if last or not opened.learned(error):
                    raise
    meta = {**_meta(how), "mode": mode, **({"hooks": hooks} if hooks else {})}
    read = _with_state(read_exported(exported, opened.symbols(), opened.names(exported), meta,
                                     places_of(model)), state)
    # of dims with names torch refuses conditions itself; what is left says that none is 1
    read = replace(read, same=opened.same(), conditions=())
    return read if not names and how == "export" else renamed(read, inputs)


def _with_state(read: CapturedProgram, state: Mapping[str, Any]) -> CapturedProgram:
    """The program with the names of torch's state_dict, and those of its arrays that capture
    dropped."""
    names = {clean_path(n): n for n, t in state.items() if isinstance(t, torch.Tensor)}
    sources = [replace(s, state=names.get(s.key, "") if s.data is not None else "")
               for s in read.sources]
    types, there = dict(read.types), {s.key for s in sources}
    for key in (k for k in names if k not in there):
        t = state[names[key]].detach()
        w, name = held(t), f"state_dict.{key}"
        types[name] = ComplexType(TensorType(w.dtype, w.shape[:-1])) if t.is_complex() else (
            TensorType(w.dtype, w.shape))
        sources.append(GraphInput(name, "buffer", key, w, state=names[key]))
    return replace(read, sources=tuple(sources), types=types)


def _meta(how: str) -> dict[str, Any]:
    return {"source": "torch", "capture": how, "torch": torch.__version__.partition("+")[0]}


def _captured_before(exported: ExportedProgram, dynamic: Mapping[str, Bounds],
                     names: Sequence[str]) -> CapturedProgram:
    if dynamic:
        raise UsageError("GT1104", "an exported program has the dims that it was exported with",
                         hint="give dynamic_shapes to torch.export")
    users = [s for s in exported.graph_signature.user_inputs if isinstance(s, str)]
    if names and len(names) != len(users):
        raise UsageError("GT1104", f"{len(names)} names for {len(users)} inputs")
    with quiet(), fakes():
        before = is_decomposed(exported)
        exported = decomposed(exported)
    read = read_exported(exported, {}, {}, {**_meta("export"), **({"decomposed": True} if before
                                                                 else {})}, {})
    return renamed(read, list(names)) if names else read


@contextmanager
def quiet() -> Iterator[None]:
    """Hides torch's warnings and log lines about the capture within the `with` block."""
    level, said = logging.root.manager.disable, io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(level)
    sys.stderr.write(said.getvalue())  # what the model itself printed, if all went well


@contextmanager
def unchecked() -> Iterator[None]:
    """Distributions do not check their arguments within the `with` block, as in torch.compile: a
    check is a branch on data, which cannot be captured."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(before)


@contextmanager
def sequences() -> Iterator[None]:
    """The lengths of a CTC loss are tensors within the `with` block: with numbers torch reads the
    targets, which have no data then. Packed sequences are refused, whose sizes are data."""
    plain = torch.ctc_loss

    def packed(*_: Any, **__: Any) -> None:
        raise UnsupportedError("GT1102", "torch.export cannot capture the model", (Unsupported(
            "pack_padded_sequence", "the sizes of packed sequences depend on the data"),), hint=(
            "give the recurrence the padded tensor: in one direction its results up to each "
            "length are the same; mask what follows, and gather the last state at length - 1"))

    def by_tensors(log_probs: Any, targets: Any, *rest: Any, **named: Any) -> Any:
        first, last = (x if isinstance(x, torch.Tensor) else torch.tensor(x) for x in rest[:2])
        return plain(log_probs, targets, first, last, *rest[2:], **named)
    torch.ctc_loss, torch._VF._pack_padded_sequence = by_tensors, packed
    try:
        yield
    finally:
        torch.ctc_loss = plain
        del torch._VF._pack_padded_sequence


# ---- capture -----------------------------------------------------------------------------------

def _exported(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
              shapes: Any) -> ExportedProgram:
    """The exported program: non-strict, or else strict, which can trace numpy in forward."""
    try:
        exported = torch.export.export(model, args, kwargs, dynamic_shapes=shapes,
                                       strict=False)
    except GraphtoolError:
        raise
    except Exception as error:  # whatever the user's model raises is reported with its line
        try:
            exported = torch.export.export(model, args, kwargs, dynamic_shapes=shapes,
                                           strict=True)
        except Exception:
            raise failure(error, "torch.export", _TORCH) from error
    return decomposed(exported)


def decomposed(exported: ExportedProgram) -> ExportedProgram:
    """The program in functional core ATen; ops that we import whole are not decomposed."""
    for module in exported.graph_module.modules():  # of which decomposing wants one value a call
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            custom = node.meta.pop("custom", {})
            if mine := {k: v for k, v in custom.items() if k in (CHECKPOINT, GRADIENT)}:
                node.meta["custom"] = mine
    annotate(exported)
    try:
        done = exported.run_decompositions(without_kept(default_decompositions()))
        done._guards_code = exported._guards_code  # of sizes; torch forgets them here
        return done
    except GraphtoolError:
        raise
    except Exception as error:
        raise failure(error, "torch.export's decomposition", _TORCH) from error


def without_kept(table: Any) -> Any:
    """torch's table of decompositions without the ops that we import whole."""
    for name in KEEP:
        packet_name, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, packet_name, None)
        for o in ([overload] if overload else packet.overloads() if packet else []):
            op = getattr(packet, o, None)
            if op is not None and op in table:
                del table[op]
    return table


def renamed(p: CapturedProgram, names: list[str]) -> CapturedProgram:
    """The program with these names for its user inputs, in order."""
    users = iter(names)
    sources = tuple(replace(s, key=next(users, s.key)) if s.kind == "user" else s
                    for s in p.sources)
    keys = {old.key: new.key for old, new in zip(p.sources, sources, strict=True)}
    sinks = tuple(replace(s, key=keys.get(s.key, s.key)) if s.kind == "state" else s
                  for s in p.sinks)
    return replace(p, sources=sources, sinks=sinks)
