"""Whole training runs in compiled C against torch: loss curves on the same batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool.compile.as_is import build
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training

BATCH, CLASSES, VOCABULARY, LENGTH = 16, 10, 50, 12


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.Tanh(),
                         nn.Linear(32, CLASSES))


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def resnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 1, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, CLASSES))


class Transformer(nn.Module):
    """A causal language model: embedding, one pre-norm block, a head over the vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        d = 32
        self.e, self.p = nn.Embedding(VOCABULARY, d), nn.Parameter(torch.randn(LENGTH, d) * 0.02)
        self.n1, self.n2, self.n = (nn.LayerNorm(d) for _ in range(3))
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.f1, self.f2, self.head = nn.Linear(d, 64), nn.Linear(64, d), nn.Linear(d, VOCABULARY)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.e(ids) + self.p
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return self.head(self.n(x + self.f2(nn.functional.gelu(self.f1(self.n2(x))))))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.r, self.o = nn.LSTM(6, 16, batch_first=True), nn.Linear(16, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.o(self.r(x)[0][:, -1])


def batches(shape: tuple[int, ...], count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Twelve batches over and over, so that there is something to learn."""
    if shape:
        kept = [(torch.randn(BATCH, *shape), torch.randint(0, CLASSES, (BATCH,)))
                for _ in range(12)]
    else:
        kept = [(t[:, :-1].contiguous(), t[:, 1:].contiguous()) for t in (
            torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)) for _ in range(12))]
    return [kept[i % 12] for i in range(count)]


CASES: list[tuple[Callable[[], nn.Module], tuple[int, ...], str, Any, float]] = [
    (mlp, (64,), "sgd{momentum=0.9}", lambda p: torch.optim.SGD(p, 0.02, momentum=0.9), 0.02),
    (lenet, (1, 16, 16), "adamw", lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.01), 1e-3),
    (resnet, (1, 12, 12), "sgd{momentum=0.9,weight_decay=0.0001}",
     lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, weight_decay=1e-4), 0.02),
    (Transformer, (), "adam", lambda p: torch.optim.Adam(p, 1e-3), 1e-3),
    (Recurrent, (9, 6), "rmsprop", lambda p: torch.optim.RMSprop(p, 1e-3), 1e-3),
]


@pytest.mark.part(2)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_fifty_steps_as_torch(case: Any, tmp_path: Path) -> None:
    make, shape, optimizer, oracle, lr = case
    torch.manual_seed(0)
    model, data = make(), batches(shape, 50)
    module = graphtool.import_model(model.eval(), (data[0][0],))
    loss = "cross_entropy" if shape else "cross_entropy{axis=-1}"
    build(training(module, Recipe(loss, optimizer=optimizer)), tmp_path / "b")
    compiled = TrainModel(tmp_path / "b", 2)
    name = compiled.inputs[0]
    model.train()
    steps = oracle(model.parameters())
    found, want = [], []
    for x, y in data:
        found.append(compiled.step({name: x.numpy(), "y": y.numpy()}, lr))
        steps.zero_grad()
        result = nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        result.backward()  # type: ignore[no-untyped-call]
        steps.step()
        want.append(result.item())
    np.testing.assert_allclose(found, want, rtol=1e-4)
    assert sum(found[-12:]) < sum(found[:12])
    state = model.state_dict()
    for n in compiled.row.model:
        np.testing.assert_allclose(compiled.state[n], state[n].numpy(), rtol=5e-3, atol=2e-4,
                                   err_msg=n)
    model.eval()
    np.testing.assert_allclose(compiled.predict({name: x.numpy()})[0], model(x).detach().numpy(),
                               rtol=1e-3, atol=1e-3)


def test_the_header_compiles_alone_and_steps_from_c(tmp_path: Path) -> None:
    import subprocess
    torch.manual_seed(0)
    model, ((x, _),) = mlp(), batches((64,), 1)
    module = graphtool.import_model(model.eval(), (x,))
    build(training(module, Recipe("cross_entropy", optimizer="sgd")), tmp_path / "b",
                   name="tiny")
    (tmp_path / "main.c").write_text("""
#include <stdio.h>
#include "tiny.h"
static _Alignas(64) char state[TINY_STATE_BYTES], arena[TINY_ARENA_BYTES];
int main(void)
{
    static float x[16 * 64], loss;
    static int64_t y[16];
    for (int i = 0; i < 16 * 64; i++) x[i] = (float)(i % 7) / 7;
    for (int i = 0; i < 16; i++) y[i] = i % 10;
    tiny_init(state, arena, 1);
    for (int i = 0; i < 200; i++)
        if (tiny_step(state, arena, x, y, 0.5f, &loss, 1)) return 1;
    printf("%.6f", loss);
    return 0;
}
""")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-Ib", "main.c", "-Lb", "-ltiny",
                    "-Wl,-rpath,b", "-o", "main"], cwd=tmp_path, check=True)
    out = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    compiled = TrainModel(tmp_path / "b", 1)
    batch = {compiled.inputs[0]: ((np.arange(16 * 64) % 7) / np.float32(7)).astype(
        np.float32).reshape(16, 64), "y": np.arange(16) % 10}
    losses = [compiled.step(batch, 0.5) for _ in range(200)]
    assert float(out.stdout) == pytest.approx(losses[-1], abs=2e-6) and losses[-1] < losses[0]
