"""StableHLO text in the hands of others: jaxlib's parser and interpreter, XLA, and IREE.

Each is a function of a text and its inputs; what cannot be done raises the other's own error.
"""

from __future__ import annotations

import pickle
import select
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from graphtool.dtypes import of_numpy
from graphtool.exporters.stablehlo.text import dense, tensor
from graphtool.importers.stablehlo.driver.values import array_of
from graphtool.importers.stablehlo.text import attributes
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.importers.stablehlo.text.reader import Reader
from graphtool.io.weights import weight
from graphtool.ir.graph import TensorType

Array = np.ndarray[Any, Any]


@cache
def _context() -> Any:
    from jax._src.interpreters import mlir
    from jaxlib.mlir.dialects import stablehlo
    made = mlir.make_ir_context()
    stablehlo.register_interpreter_dialect(made)
    stablehlo.register_stablehlo_passes()
    return made


def parsed(text: str) -> Any:
    """The module as jaxlib's parser reads it, verified. It has a portable form, in which JAX stores
    programs and hands them to devices, unless it has functions of CHLO, which has none."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    with _context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        if "chlo." not in text:
            stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
        return module


_EXPANDED = "func.func(chlo-legalize-to-stablehlo)"
_FIXED = ("func.func(stablehlo-legalize-composite-to-call),inline,"
          "stablehlo-refine-arguments{{types={types}}},stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism)")


def interpreted(text: str, inputs: list[Array]) -> list[Array]:
    """What StableHLO's reference interpreter gives; operations of CHLO are expanded before, and
    open sizes fixed to those of the inputs."""
    from jaxlib.mlir import ir, passmanager
    from jaxlib.mlir.dialects import stablehlo
    types = ",".join(tensor(TensorType(of_numpy(x.dtype), x.shape)) for x in inputs)
    steps = [_EXPANDED] if "chlo." in text else []
    steps += [_FIXED.format(types=types)] if "<?x" in text or "x?x" in text else []
    with _context():
        module = ir.Module.parse(text)
        if steps:
            passmanager.PassManager.parse(f"builtin.module({','.join(steps)})").run(
                module.operation)
        given = [ir.Attribute.parse(_text(x)) for x in inputs]
        return [_array(str(x)) for x in stablehlo.eval_module(module, given)]


def _text(x: Array) -> str:
    return f"{dense(weight(x))} : {tensor(TensorType(of_numpy(x.dtype), x.shape))}"


def _array(text: str) -> Array:
    """The array of `dense<…> : tensor<…>`."""
    from graphtool.importers.stablehlo.driver.values import element_type
    r = Reader(text)
    value = attributes.value(r)
    assert isinstance(value, Dense) and value.kind is not None
    shape = tuple(int(d or 0) for d in value.kind.shape or ())
    return array_of(value, element_type(value.kind), shape)


class Xla:
    """A text compiled by XLA for the processor, as `jax.jit` compiles its own."""

    def __init__(self, text: str) -> None:
        import jax
        from jax._src.interpreters import mlir
        from jaxlib import xla_client
        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        self.device = jax.devices("cpu")[0]
        with _context():
            code = mlir.module_to_bytecode(parsed(text))
        devices = xla_client.DeviceList((self.device,))
        self.made = self.device.client.compile_and_load(code, devices,
                                                        xla_client.CompileOptions())

    def __call__(self, inputs: list[Array]) -> list[Array]:
        given = [self.jax.device_put(x, self.device) for x in inputs]
        out = self.made.execute_sharded(given).disassemble_into_single_device_arrays()
        return [np.asarray(x[0]) for x in out]


class Iree:
    """A text compiled by IREE for the processor."""

    def __init__(self, text: str) -> None:
        import iree.compiler
        import iree.runtime
        self.runtime = iree.runtime
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = iree.compiler.compile_str(
                text, target_backends=["llvm-cpu"], input_type="stablehlo",
                extra_args=["--iree-llvmcpu-target-cpu=host"])
        self.module = iree.runtime.load_vm_flatbuffer(code, driver="local-sync")

    def __call__(self, inputs: list[Array]) -> list[Array]:
        out = self.module.main(*inputs)
        several = out if isinstance(out, (tuple, list)) else [out]
        return [np.asarray(x.to_host()) for x in several]


PEERS: dict[str, Callable[[str, list[Array]], list[Array]]] = {
    "interpreter": interpreted, "xla": lambda text, inputs: Xla(text)(inputs),
    "iree": lambda text, inputs: Iree(text)(inputs)}


class Guarded:
    """A peer in a process of its own: some end the process where others raise an error."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self, text: str, inputs: list[Array], seconds: float = 60) -> list[Array]:
        """The results. Raises RuntimeError with what the peer said, also where it died."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.lab.hlo_peers", self.peer],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child = self.process
        assert child.stdin and child.stdout
        pickle.dump((text, inputs), child.stdin)
        child.stdin.flush()
        if not select.select([child.stdout], [], [], seconds)[0]:
            child.kill()
            raise RuntimeError(f"it took more than {seconds} seconds")
        try:
            done, found = pickle.load(child.stdout)
        except EOFError:
            raise RuntimeError("it ended its process") from None
        if not done:
            raise RuntimeError(found)
        return found  # type: ignore[no-any-return]


def serve(peer: str) -> None:
    """Answer one request after the other, from stdin to stdout."""
    out = sys.stdout.buffer
    while True:
        try:
            text, inputs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = True, PEERS[peer](text, inputs)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        pickle.dump(answer, out)
        out.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
