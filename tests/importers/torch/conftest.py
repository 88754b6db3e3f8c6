"""Leaves the whole folder out where torch is not installed."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
