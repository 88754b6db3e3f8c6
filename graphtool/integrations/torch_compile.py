"""`torch.compile(model, backend="graphtool")`: Dynamo's graphs as compiled libraries.

AOTAutograd separates forward and backward and removes mutation from the graphs. Each is built once
and runs on torch's own memory. A graph that cannot be built runs eagerly, with a warning that gives
the reason.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import CompileContext, TracingContext

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError, UnsupportedError, UsageError, one_of
from graphtool.importers.torch.driver.aot import CapturedModule, Output, captured, decompositions
from graphtool.importers.torch.driver.live import DTYPES
from graphtool.native import runtime
from graphtool.passes import run as run_passes
from graphtool.symbolic import Dim, substitute
from graphtool.target import detect

OPTIONS = ("freeze",)


class Made(msgspec.Struct):
    """One graph of a variant: which part of the work, and the build. `arena` is the bytes of
    intermediate values, None where the sizes are open; `error` says why torch runs it instead."""

    part: str  # forward | backward | inference
    nodes: int = 0
    kernels: int = 0
    weights: int = 0
    arena: int | None = None
    error: str = ""


# by the function that Dynamo holds; ids are compared as objects, since equal ones come again
_MADE: weakref.WeakKeyDictionary[Callable[..., Any], tuple[Any, Made]] = (
    weakref.WeakKeyDictionary())
_TORCH = {row.name: kind for kind, row in DTYPES.items()}


def graphtool_backend(gm: fx.GraphModule, example_inputs: Sequence[Any], *,
                      options: Mapping[str, Any] | None = None, **_: Any) -> Callable[..., Any]:
    """The backend that Dynamo calls with each captured graph.

    `options={"freeze": True}` makes parameters constants of graphs that run without gradients:
    these are faster, but later changes of the parameters have no effect. Raises UsageError GT1120
    for other options.
    """
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise UsageError("GT1120", f"the backend has no option {unknown[0]!r}",
                         hint=one_of(unknown[0], OPTIONS))
    fixed = dict(_parameters(example_inputs)) if (options or {}).get("freeze") else {}
    compiler = aot_autograd(
        fw_compiler=functools.partial(_compiled, part="forward"),
        bw_compiler=functools.partial(_compiled, part="backward"),
        inference_compiler=functools.partial(_compiled, part="inference", frozen=fixed),
        decompositions=decompositions(), partition_fn=min_cut_rematerialization_partition)
    compiled: Callable[..., Any] = compiler(gm, example_inputs)
    return compiled


def _parameters(inputs: Sequence[Any]) -> list[tuple[int, torch.Tensor]]:
    return [(i, x) for i, x in enumerate(inputs)
            if isinstance(x, torch.nn.Parameter) or hasattr(x, "_dynamo_static_input_type")]


def _compiled(gm: fx.GraphModule, inputs: Sequence[Any], *, part: str,
              frozen: Mapping[int, torch.Tensor] | None = None) -> Callable[..., Any]:
    """A function that runs one graph: the library, or torch itself if it cannot be built."""
    try:
        compiled = Compiled(captured(gm, frozen or {}), _returned(part))
        boxed: Callable[..., Any] = make_boxed_func(compiled)
        _MADE[boxed] = CompileContext.current_compile_id(), compiled.told(part)
    except GraphtoolError as error:
        _say(f"graphtool runs this {part} graph eagerly: {_reason(error)}")
        boxed = make_boxed_func(gm.forward)
        _MADE[boxed] = CompileContext.current_compile_id(), Made(part, error=_reason(error))
    return boxed


def made_for(compile_id: Any) -> list[Made]:
    """The graphs of a variant, which Dynamo knows by this object, forward before backward."""
    return sorted((m for made_in, m in _MADE.values() if made_in is compile_id),
                  key=lambda m: m.part == "backward")


def _reason(error: GraphtoolError) -> str:
    """The error in one line, or one line for each call that cannot be imported."""
    rows = [f"{i.name}: {i.reason}" + (f" ({i.places[0]})" if i.places and i.places[0] else "")
            for i in error.items] if isinstance(error, UnsupportedError) else []
    return "\n  ".join([f"[{error.code}] {error.message}", *rows])


@functools.cache
def _say(message: str) -> None:
    """Warn; an equal warning is shown once, however often Dynamo compiles the same graph."""
    warnings.warn(message, UserWarning, stacklevel=2)


def _returned(part: str) -> int | None:
    """The number of a forward graph's results for the user; the others are for the backward."""
    context = TracingContext.try_get()
    meta = context.fw_metadata if context and part == "forward" else None
    return None if meta is None else int(meta.num_forward)


class Compiled:
    """A built graph as a function from torch's inputs to new result tensors."""

    def __init__(self, what: CapturedModule, returned: int | None) -> None:
        self.what, self.lock = what, threading.Lock()
        self.outputs = [o if returned is None or i < returned else Output(o.computed, o.passed,
                                                                          o.size)
                        for i, o in enumerate(what.outputs)]
        self.kinds = [v.type for v in what.module.graph.outputs]
        self.model = _built(what, self) if self.kinds else None
        self.seeded = len(what.module.graph.inputs) > len(what.tensors)

    def __call__(self, *args: Any) -> list[Any]:
        sizes: dict[str, Dim] = {name: args[i] for name, i in self.what.sizes.items()}
        for name, (i, axis) in self.what.axes.items():
            if name not in sizes:
                sizes[name] = args[i].shape[axis]
        results = self._run(args, sizes) if self.model else []
        return [self._result(o, args, results, sizes) for o in self.outputs]

    def told(self, part: str) -> Made:
        """What `variants` says of this graph."""
        if self.model is None:
            return Made(part)
        m = self.model.manifest
        return Made(part, len(self.what.module.graph.nodes), len(m.steps),
                             m.weights_bytes, m.arena if isinstance(m.arena, int) else None)

    def _run(self, args: Sequence[Any], sizes: Mapping[str, Dim]) -> list[torch.Tensor]:
        assert self.model is not None
        held = [args[i].contiguous() for i in self.what.tensors]
        outputs = [torch.empty([_size(d, sizes) for d in kind.shape], dtype=_TORCH[kind.dtype.name])
                   for kind in self.kinds]
        if self.seeded:  # the library's generator goes on from a draw of torch's
            held.append(torch.randint(-1 << 62, 1 << 62, (2,)))
            outputs[-1] = held[-1]
        with self.lock:
            self.model.launch(sizes, [x.data_ptr() for x in held], [y.data_ptr() for y in outputs])
        return outputs

    def _result(self, o: Output, args: Sequence[Any], results: list[torch.Tensor],
                sizes: Mapping[str, Dim]) -> Any:
        if o.computed is None:
            return args[o.passed] if o.passed is not None else (
                None if o.size is None else _size(o.size, sizes))
        y = results[o.computed]
        if o.strides is None:
            return y
        strided = torch.empty_strided(y.shape, [_size(s, sizes) for s in o.strides],
                                      dtype=y.dtype)
        return strided.copy_(y)


def _size(d: Dim, sizes: Mapping[str, Dim]) -> int:
    size = d if isinstance(d, int) else substitute(d, sizes)
    assert isinstance(size, int), f"{size} is open"
    return size


def _built(what: CapturedModule, owner: Compiled) -> runtime.Model:
    """The library, in a directory that is deleted with its owner; the C compilation is cached."""
    folder = Path(tempfile.mkdtemp(prefix="graphtool-torch-"))
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    target = detect()
    module = run_passes(what.module, verify=False, supply={"target": target})
    return runtime.load(build(module, folder / "build", target=target), torch.get_num_threads())
