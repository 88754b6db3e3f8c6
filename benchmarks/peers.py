"""The contestants: how each one builds a model, once, and loads it, in the process that is timed.

All get the same files and as many threads as asked for, write into buffers that were bound before
where their interface has such a thing, and compute in float32.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import work
from benchmarks.work import Array, Prepared


@dataclass(frozen=True)
class Case:
    """A model at a number of threads, and the folder where the contestant keeps its build."""

    model: Prepared
    threads: int
    cache: Path


@dataclass(frozen=True)
class Loaded:
    """`run` does one inference; `outputs` fetches what the last one gave."""

    run: Callable[[], Any]
    outputs: Callable[[Any], list[Array]] = field(default=lambda result: list(result))


@dataclass(frozen=True)
class Peer:
    """`build` runs in a process of its own before, so that its memory is not counted."""

    name: str
    needs: tuple[str, ...]
    load: Callable[[Case], Loaded]
    build: Callable[[Case], None] | None = None
    env: Callable[[Case], Mapping[str, str]] = lambda case: {}

    @property
    def installed(self) -> bool:
        try:
            return all(importlib.util.find_spec(n) for n in self.needs)
        except ModuleNotFoundError:  # not even the package that it would be a part of
            return False


# ---- graphtool ----------------------------------------------------------------------------------


def _graphtool_build(case: Case) -> None:
    from graphtool import importers
    from graphtool.api import optimize
    from graphtool.build import build
    module = optimize(importers.import_source(str(case.model.onnx)), verify=False)
    build(module, case.cache / "build")


def _graphtool(case: Case) -> Loaded:
    from graphtool import runtime
    model = runtime.load(case.cache / "build", case.threads)
    results = model.run(dict(zip((s.name for s in model.inputs), case.model.arrays("in"),
                                 strict=True)))
    return Loaded(model.call, lambda _: list(results.values()))


# ---- runtimes that read ONNX --------------------------------------------------------------------


def _onnxruntime(case: Case) -> Loaded:
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = case.threads, 1
    options.log_severity_level = 4
    session = ort.InferenceSession(str(case.model.onnx), options,
                                   providers=["CPUExecutionProvider"])
    feeds = dict(zip(case.model.input_names, case.model.arrays("in"), strict=True))
    binding = session.io_binding()
    for port in session.get_inputs():
        binding.bind_ortvalue_input(port.name, ort.OrtValue.ortvalue_from_numpy(feeds[port.name]))
    results = [ort.OrtValue.ortvalue_from_numpy(np.empty_like(a))
               for a in case.model.arrays("out")]
    for port, value in zip(session.get_outputs(), results, strict=True):
        binding.bind_ortvalue_output(port.name, value)
    return Loaded(lambda: session.run_with_iobinding(binding),
                  lambda _: [r.numpy() for r in results])


def _openvino(case: Case) -> Loaded:
    import openvino as ov
    core = ov.Core()
    compiled = core.compile_model(core.read_model(str(case.model.onnx)), "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": case.threads})
    request = compiled.create_infer_request()
    arrays = dict(zip(case.model.input_names, case.model.arrays("in"), strict=True))
    tensors = []
    for port in compiled.inputs:
        name = next(n for n in port.get_names() if n in arrays)
        tensors.append(ov.Tensor(arrays[name], shared_memory=True))
        request.set_tensor(port, tensors[-1])

    def outputs(_: Any) -> list[Array]:
        assert tensors  # they must live as long as the request
        return [request.get_output_tensor(i).data.copy() for i in range(len(compiled.outputs))]
    return Loaded(request.infer, outputs)


IREE_FLAGS = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
              "--iree-llvmcpu-target-cpu=host", "--iree-llvmcpu-stack-allocation-limit=1048576")
IREE_LEVELS = (("--iree-opt-level=O3", "--iree-opt-data-tiling=true"), ("--iree-opt-level=O2",))


def _iree_build(case: Case) -> None:
    """At the highest level that compiles the model."""
    mlir, out = case.cache / "model.mlir", case.cache / "model.vmfb"
    if out.exists():
        return
    _program("import_onnx", case.model.onnx, "--opset-version", "21", "-o", mlir)
    for last, level in enumerate(IREE_LEVELS, 1 - len(IREE_LEVELS)):
        try:
            _program("scripts.iree_compile", mlir, "-o", out, *IREE_FLAGS, *level)
            break
        except RuntimeError:
            if last == 0:
                raise
    mlir.unlink()


def _program(name: str, *arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, "-m", f"iree.compiler.tools.{name}",
                           *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")


def _iree(case: Case) -> Loaded:
    import iree.runtime as rt
    import iree.runtime.flags
    if case.threads > 1:
        iree.runtime.flags.parse_flags(f"--task_topology_group_count={case.threads}")
    config = rt.Config("local-sync" if case.threads == 1 else "local-task")
    context = rt.SystemContext(config=config)
    module = rt.VmModule.mmap(context.instance, str(case.cache / "model.vmfb"))
    context.add_vm_module(module)
    name = next(n for n in module.function_names
                if not n.startswith("__") and not n.endswith("$async"))
    function = context.modules[module.name][name]
    arrays = [rt.asdevicearray(config.device, a) for a in case.model.arrays("in")]

    def outputs(result: Any) -> list[Array]:
        several = isinstance(result, (tuple, list))
        return [r.to_host() for r in (result if several else [result])]
    return Loaded(lambda: function(*arrays), outputs)


# ---- torch --------------------------------------------------------------------------------------


def _torch_model(case: Case) -> tuple[Any, list[Any]]:
    import torch

    from benchmarks.models.seeded import build
    torch.set_num_threads(case.threads)
    torch.set_grad_enabled(False)
    return build(case.model.name)[0], [torch.from_numpy(a) for a in case.model.arrays("in")]


def _torch_outputs(result: Any) -> list[Array]:
    from benchmarks.models.seeded import flat
    return [np.asarray(t) for t in flat(result)]


def _torch(case: Case) -> Loaded:
    model, inputs = _torch_model(case)
    return Loaded(lambda: model(*inputs), _torch_outputs)


def _inductor(case: Case) -> Loaded:
    """torch.compile with frozen weights, which lets it fold and pack them."""
    import torch
    import torch._inductor.config as config
    config.compile_threads, config.freezing = 1, True
    model, inputs = _torch_model(case)
    compiled = torch.compile(model)
    return Loaded(lambda: compiled(*inputs), _torch_outputs)


def _inductor_build(case: Case) -> None:
    _inductor(case).run()


# ---- jax ----------------------------------------------------------------------------------------


def _jax(case: Case) -> Loaded:
    from benchmarks.jax_graph import compiled
    run = compiled(case.model.onnx, case.model.arrays("in"))
    return Loaded(run, lambda result: [np.asarray(r) for r in result])


PEERS: dict[str, Peer] = {p.name: p for p in (
    Peer("graphtool", (), _graphtool, _graphtool_build),
    Peer("onnxruntime", ("onnxruntime",), _onnxruntime),
    Peer("openvino", ("openvino",), _openvino),
    Peer("torch", ("torch",), _torch),
    Peer("inductor", ("torch",), _inductor, _inductor_build,
         lambda case: {"TORCHINDUCTOR_CACHE_DIR": str(case.cache / str(case.threads))}),
    Peer("jax", ("jax",), _jax),
    Peer("iree", ("iree.runtime", "iree.compiler"), _iree, _iree_build),
)}


def case(model: str, peer: str, threads: int) -> Case:
    return Case(work.prepared(model), threads, work.cache(peer, model))


def facts(case: Case, loaded: Loaded, result: Any) -> dict[str, Any]:
    """The error against float64."""
    got = loaded.outputs(result)
    return {"error64": work.error_of(got, case.model.arrays("out64"))}


def build(model: str, peer: str, threads: int) -> dict[str, Any]:
    """The contestant's build step, as a job; empty where all went well."""
    step = PEERS[peer].build
    if step:
        step(case(model, peer, threads))
    return {}
