"""The driver of devices on the processor, which a process has once."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator

import pytest

from graphtool.native import cuda
from tests.native.cuda import OnC, driver


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def device(libcuda: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    """The driver of an sm_90 that does not fail, and gcc in place of the compiler of CUDA."""
    monkeypatch.setattr(cuda, "find", OnC)
    for name, value in (("cuda_arch", 90), ("cuda_fail_in", 0)):
        ctypes.c_int.in_dll(libcuda, name).value = value
    yield libcuda
    gc.collect()  # the driver looks behind memory when it is given back: here, not in another test
