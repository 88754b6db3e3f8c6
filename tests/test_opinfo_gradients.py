"""torch's own samples with gradients: a few operators always, all of them when asked for."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("expecttest", reason="torch's table of operators needs it")

from tests.lab import gradients, samples

FEW = ("addmm", "cumprod", "logsumexp", "nn.functional.conv2d", "norm", "prod",
       "scatter_reduce.amax", "var_mean")


def named() -> dict[str, Any]:
    return {samples.title(op): op for op in samples.operators(gradient=True)}


def test_a_few_operators() -> None:
    table = named()
    found = [gradients.judged(table[name], few=2) for name in FEW]
    assert [v for v in found if v.status != gradients.PASSED] == []


@pytest.mark.slow
def test_what_disagrees_is_listed_with_its_reason() -> None:
    found = {}
    for name, op in named().items():
        try:
            verdict = gradients.judged(op)
        except Exception as error:
            verdict = gradients.Verdict(name, gradients.FAILED, 0, str(error))
        if verdict.status == gradients.FAILED:
            found[name] = verdict.detail
    assert found.keys() == gradients.EXCEPTIONS.keys(), found
