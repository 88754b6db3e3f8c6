"""Files of other programs that graphtool reads: how each is read, and small samples to change."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.jobs import PROJECT
from graphtool.importers import table  # noqa: F401  (fills the table of importers)
from graphtool.importers.record import IMPORTERS, Request
from graphtool.io import npz

BYTECODE = b"ML\xefR\x0dStableHLO_v1.0.0\0\x01\x19\x05\x01" + bytes(range(200))


def read_by(name: str, inputs: tuple[str, ...] = ()) -> Callable[[Path], None]:
    """What imports a file in this form, without a check by another runtime."""
    def read(path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader = IMPORTERS[name].read
            assert reader is not None
            reader(str(path), Request(inputs=inputs))
    return read


def small_model() -> object:
    """A model of torch with products, a norm, and a write in place."""
    import torch
    from torch import nn

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.norm = nn.Linear(4, 6), nn.BatchNorm1d(6)
            self.register_buffer("shift", torch.ones(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.norm(self.up(x))) + self.shift
            y[:, 0] += 1
            return torch.cat([y, y * 2], 1).reshape(-1, 3).sum(1)
    torch.manual_seed(0)
    return Small().eval()


def exported() -> list[Path]:
    """An archive of torch.export."""
    import torch
    path = Path(tempfile.mkdtemp()) / "small.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(small_model(), (torch.ones(2, 4),)), path)
    return [path]


def scripted() -> list[Path]:
    """An archive of TorchScript."""
    import torch
    path = Path(tempfile.mkdtemp()) / "small.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(small_model()).save(str(path))
    return [path]


def programs() -> list[Path]:
    """Programs of StableHLO, as text: one of each sixteenth of the samples, none of them long."""
    folder = PROJECT / "tests/importers/stablehlo/samples"
    return [p for p in sorted(folder.glob("*.mlir"))[::16] if p.stat().st_size < 8000]


def bytecode() -> list[Path]:
    """The beginning of a program in MLIR's bytecode."""
    path = Path(tempfile.mkdtemp()) / "program.mlir"
    path.write_bytes(BYTECODE)
    return [path]


def onnx_models() -> list[Path]:
    """A model of ONNX."""
    return [PROJECT / "samples/digits.onnx"]


def arrays() -> list[Path]:
    """Inputs of a run."""
    path = Path(tempfile.mkdtemp()) / "in.npz"
    np.savez(path, x=np.ones((2, 3), np.float32), n=np.arange(4), b=np.array(True))
    return [path]


def read_arrays(path: Path) -> None:
    """The arrays of a file."""
    for array in npz.load(path).values():
        array.sum()


FOREIGN: dict[str, tuple[Callable[[Path], object], Callable[[], list[Path]]]] = {
    "pt2": (read_by("pt2"), exported),
    "torchscript": (read_by("torchscript", ("x:f32[2,4]",)), scripted),
    "mlir": (read_by("stablehlo"), programs),
    "bytecode": (read_by("stablehlo"), bytecode),
    "onnx": (read_by("onnx"), onnx_models),
    "arrays": (read_arrays, arrays)}
