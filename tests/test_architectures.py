"""Language models of transformers: a slice of `python -m tests.lab architectures`."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")
from benchmarks.models import architectures
from tests.lab.architectures import good


@pytest.mark.parametrize("name", ["llama", "falcon", "mamba"])
def test_logits_and_decoding_are_those_of_transformers(name: str) -> None:
    found = architectures.row(name)
    assert good(found), found


def test_a_model_that_cannot_be_imported_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphtool.errors import UnsupportedError

    def refuse(name: str) -> None:
        raise UnsupportedError("GT1102", f"{name} is not supported")
    monkeypatch.setattr(architectures, "step", refuse)
    found = architectures.row("gpt2")
    assert found["why"] == "gpt2 is not supported" and not good(found)
