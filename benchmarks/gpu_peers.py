"""The contestants on a GPU: a library of graphtool called as C calls it, and torch, eager and
compiled, each recorded in a CUDA graph. A call ends when the device has.

The worker of graphtool needs numpy alone.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import gpu_data, work
from benchmarks.gpu_data import Bundled
from benchmarks.league import Case, Loaded, Peer
from benchmarks.work import Prepared, Row

WARM = 3  # runs of torch before it is recorded


def case(name: str, peer: str, threads: int) -> Case:
    where = work.root() / "gpu"
    return Case(Prepared(name, where), threads, where)


def facts(case: Case, loaded: Loaded, result: Any) -> Row:
    """The error of the first run, where the contestant knows what was expected."""
    found = loaded.outputs(result)
    return {"error_rms": float(found[0][0])} if found else {}


# ---- graphtool ----------------------------------------------------------------------------------


class Device:
    """The memory of a library on a device, and its runs."""

    def __init__(self, case: Bundled, raw: dict[str, bytes]) -> None:
        self.case, self.raw = case, raw
        with tempfile.TemporaryDirectory(prefix="gpu-") as folder:
            path = Path(folder) / case.library
            path.write_bytes(raw[case.library])
            self.library = ctypes.CDLL(str(path))
            self.library.model_arena_bytes.restype = ctypes.c_size_t
            noise = gpu_data.block()
            self.weights = self._load(Path(folder), noise) if case.size else None
        inputs = [self._filled(gpu_data.bytes_of(r, noise, raw)) for r in case.inputs]
        outputs = [inputs[y.donor] if y.donor >= 0 else
                   self._memory(y.count * gpu_data.WIDTHS[y.dtype]) for y in case.outputs]
        arena = self._memory(self.library.model_arena_bytes(None))
        self.outputs = outputs
        self.arguments = (self.weights, arena, None, self._addresses(inputs),
                          self._addresses(outputs))

    def run(self) -> None:
        """One call; what it computed is on the device when this returns."""
        self._must(self.library.model_run_device(*self.arguments))

    def error(self) -> float:
        """How far the outputs are from what was expected."""
        got = []
        for at, y in zip(self.outputs, self.case.outputs, strict=True):
            data = np.empty(y.count * gpu_data.WIDTHS[y.dtype], np.uint8)
            self._must(self.library.model_device_copy(
                ctypes.c_void_p(data.ctypes.data), at, ctypes.c_size_t(data.nbytes)))
            got.append(data)
        return gpu_data.error(self.case, got, self.raw)

    def _must(self, status: int) -> None:
        if status:
            say = self.library.model_status_text
            say.restype = ctypes.c_char_p
            raise RuntimeError(say(status).decode())

    def _load(self, folder: Path, noise: Any) -> ctypes.c_void_p:
        path = folder / "weights.safetensors"
        gpu_data.weights_file(self.case, self.raw, noise, path)
        held = (ctypes.c_void_p * 3)()  # data, memory, bytes
        self._must(self.library.model_load(held, str(path).encode()))
        return ctypes.c_void_p(held[0])

    def _memory(self, size: int) -> ctypes.c_void_p:
        at = ctypes.c_void_p()
        self._must(self.library.model_device_alloc(ctypes.byref(at),
                                                   ctypes.c_size_t(max(size, 1))))
        return at

    def _filled(self, data: Any) -> ctypes.c_void_p:
        at, data = self._memory(data.nbytes), np.ascontiguousarray(data)
        self._must(self.library.model_device_copy(
            at, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)))
        return at

    @staticmethod
    def _addresses(rows: list[ctypes.c_void_p]) -> Any:
        return (ctypes.c_void_p * max(len(rows), 1))(*(r.value for r in rows))


def _graphtool(case: Case) -> Loaded:
    device = Device(*gpu_data.read(case.cache / f"{case.model.name}.zip"))
    device.run()
    error = np.array([device.error()])  # of the first step: a later one begins from other weights
    return Loaded(device.run, lambda _: [error])


# ---- torch --------------------------------------------------------------------------------------


def _torch(case: Case, compiled: bool = False) -> Loaded:
    """The network recorded in a CUDA graph; convolutions channels last, and with their algorithms
    tried out, as torch is fastest."""
    import torch

    from benchmarks.models.device import CASES, made
    name, _, dtype = case.model.name.partition(".")
    entry = CASES[name]
    torch.backends.cudnn.benchmark = True
    model, inputs = made(name, torch.bfloat16 if dtype == "bf16" else torch.float32)
    model = model.cuda()
    inputs = tuple(x.cuda() for x in inputs)
    if inputs[0].ndim == 4:
        model = model.to(memory_format=torch.channels_last)
        inputs = (inputs[0].contiguous(memory_format=torch.channels_last), *inputs[1:])
    step = (_training(entry, model, inputs, compiled) if entry.kind == "train" else
            _inference(model, inputs, compiled))
    return Loaded(_recorded(step), lambda _: [])


def _inference(model: Any, inputs: Any, compiled: bool) -> Callable[[], Any]:
    import torch
    run = torch.compile(model) if compiled else model

    def step() -> Any:
        with torch.no_grad():
            return run(*inputs)
    return step


def _training(entry: Any, model: Any, inputs: Any, compiled: bool) -> Callable[[], Any]:
    """Forward, backward, and the fused optimizer, which may be recorded."""
    import torch
    *inputs, labels = inputs
    kind = entry.optimizer.partition("{")[0]
    optimizer = (torch.optim.Adam(model.parameters(), entry.rate, fused=True, capturable=True)
                 if kind == "adam" else
                 torch.optim.SGD(model.parameters(), entry.rate, momentum=.9, fused=True))

    def forward() -> Any:
        return torch.nn.functional.cross_entropy(model(*inputs), labels)
    run = torch.compile(forward) if compiled else forward

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = run()
        loss.backward()
        optimizer.step()
        return loss
    return step


def _recorded(step: Callable[[], Any]) -> Callable[[], None]:
    """Runs of a recording, each until the device is done."""
    import torch
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = step()

    def run() -> None:
        assert kept is not None  # its memory is the recording's
        graph.replay()
        torch.cuda.synchronize()
    return run


PEERS: dict[str, Peer] = {p.name: p for p in (
    Peer("graphtool", (), _graphtool),
    Peer("eager", ("torch",), _torch),
    Peer("compile", ("torch",), partial(_torch, compiled=True)),
)}
