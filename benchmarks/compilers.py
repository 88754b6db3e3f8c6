"""The contestants that compile a model before they run it: IREE, TVM, torch.compile, and JAX.

Each build step leaves in the case's folder what `load` needs, so that what is timed, and whose
memory is counted, does not compile where that can be had.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.league import Case, Loaded
from benchmarks.work import Array

# ---- IREE ---------------------------------------------------------------------------------------

IREE_FLAGS = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu",
              "--iree-llvmcpu-target-cpu=host", "--iree-llvmcpu-stack-allocation-limit=1048576")
IREE_LEVELS = (("--iree-opt-level=O3", "--iree-opt-data-tiling=true"), ("--iree-opt-level=O2",))


def iree_build(case: Case) -> None:
    """At the highest level that compiles the model."""
    mlir, out = case.cache / "model.mlir", case.cache / "model.vmfb"
    if fresh(out, case):  # the code is the same for any number of threads
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


def fresh(path: Path, case: Case) -> bool:
    """Whether what was made of the model is there and no older than the model."""
    return path.exists() and path.stat().st_mtime >= case.model.onnx.stat().st_mtime


def _program(name: str, *arguments: str | Path) -> None:
    done = subprocess.run([sys.executable, "-m", f"iree.compiler.tools.{name}",
                           *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")


def iree(case: Case) -> Loaded:
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


# ---- TVM ----------------------------------------------------------------------------------------


def tvm_build(case: Case) -> None:
    """As it comes: without a schedule that was searched for, which takes hours for a model."""
    import onnx
    import tvm
    from tvm.relax.frontend.onnx import from_onnx
    out = case.cache / "model.so"
    if fresh(out, case):
        return
    cpu = tvm.target.codegen.llvm_get_system_cpu()
    target = tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": 2})
    module = from_onnx(onnx.load(str(case.model.onnx)), keep_params_in_input=False)
    tvm.compile(module, target=target).export_library(str(case.cache / "unfinished.so"))
    (case.cache / "unfinished.so").rename(out)


def tvm(case: Case) -> Loaded:
    import tvm
    from tvm import relax
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(case.cache / "model.so")),
                                   tvm.cpu())
    arrays, main = [tvm.runtime.tensor(a) for a in case.model.arrays("in")], machine["main"]

    def outputs(result: Any) -> list[Array]:
        return [r.numpy() for r in ([result] if hasattr(result, "numpy") else result)]
    return Loaded(lambda: main(*arrays), outputs)


# ---- torch --------------------------------------------------------------------------------------


def _torch_model(case: Case) -> tuple[Any, list[Any]]:
    import torch

    from benchmarks.models.seeded import build
    torch.set_num_threads(case.threads)
    torch.set_grad_enabled(False)
    return build(case.model.name)[0], [torch.from_numpy(a) for a in case.model.arrays("in")]


def torch_outputs(result: Any) -> list[Array]:
    from benchmarks.models.seeded import flat
    return [np.asarray(t) for t in flat(result)]


def torch_eager(case: Case) -> Loaded:
    model, inputs = _torch_model(case)
    return Loaded(lambda: model(*inputs), torch_outputs)


def inductor(case: Case) -> Loaded:
    """torch.compile with frozen weights, which lets it fold and pack them."""
    import torch
    import torch._inductor.config as config
    config.compile_threads, config.freezing = 1, True
    model, inputs = _torch_model(case)
    compiled = torch.compile(model)
    return Loaded(lambda: compiled(*inputs), torch_outputs)


def inductor_build(case: Case) -> None:
    inductor(case).run()


# ---- JAX ----------------------------------------------------------------------------------------


def jax_env(case: Case) -> dict[str, str]:
    """XLA's cache of compiled programs, of any size and however quick to make."""
    return {"JAX_COMPILATION_CACHE_DIR": str(case.cache / f"xla.{case.threads}"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


def jax_build(case: Case) -> None:
    from benchmarks import jax_graph
    from benchmarks.worker import pin
    pin(case.threads)  # XLA compiles for as many threads as it sees processors
    jax_graph.export(case.model.onnx, case.model.arrays("in"), case.cache)
    jax(case).run()


def jax(case: Case) -> Loaded:
    from benchmarks import jax_call
    run = jax_call.loaded(case.cache, case.model.arrays("in"))
    return Loaded(run, lambda result: [np.asarray(r) for r in result])
