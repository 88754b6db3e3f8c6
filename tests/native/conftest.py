"""The driver of devices on the processor, which a process has once."""

from __future__ import annotations

import ctypes

import pytest

from tests.native.cuda import driver


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return driver(tmp_path_factory.mktemp("driver"))
