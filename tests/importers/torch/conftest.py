"""Leaves the whole folder out where torch is not installed; else exports are quick, here and in all
tests that run beside these."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests import torch_export

torch_export.install()
