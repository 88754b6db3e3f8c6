"""Open dims of torch modules that must be multiples of a number, or equal: taken from torch.export,
or said by `--dynamic`; checked by the evaluator and by compiled code. The oracle is torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from graphtool import interp
from graphtool.errors import InputError, UsageError
from graphtool.importers.torch import import_torch
from graphtool.ir import encode, listing, serial
from graphtool.ir.verify import verify_module
from tests.lower.compiling import compiled, optimised


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.deep = nn.Conv2d(4, 4, 3, 2, 1)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
        self.last = nn.Conv2d(7, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.relu(self.down(x))
        second = self.up(self.deep(first)) + first
        wide = functional.interpolate(second, scale_factor=2.0)
        return self.last(torch.cat([wide, x], 1))  # type: ignore[no-any-return]


class Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b


class Joined(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat([a, b], 1).softmax(-1)


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v)


def tensors(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return tuple(torch.randn(s) for s in shapes)


OPEN = (1, None)
IMAGE = {"N": OPEN, "H@x.2": OPEN, "W@x.3": OPEN}
CASES: dict[str, Any] = {  # module, sample, dynamic, conditions, shapes that satisfy them or not
    "u-net": (UNet, [(2, 3, 8, 12)], IMAGE, ["H % 4 == 0", "W % 4 == 0"],
              [[(1, 3, 16, 4)], [(3, 3, 8, 20)]], [[(1, 3, 16, 6)], [(1, 3, 7, 8)]]),
    "steps": (UNet, [(2, 3, 8, 12)],
              {"N": (0, 8), "H@x.2": (32, 96, 32), "W@x.3": (4, None, 4)},
              ["H % 32 == 0", "W % 4 == 0"], [[(1, 3, 64, 4)], [(0, 3, 32, 8)]],
              [[(1, 3, 36, 4)]]),
    "square": (UNet, [(2, 3, 8, 8)], {"N": OPEN, "H@x.2": (8, 64, 8), "W@x.3": "H"},
               ["H % 8 == 0", "W == H"], [[(1, 3, 16, 16)]], [[(1, 3, 16, 8)]]),
    "equal": (Product, [(4, 3), (4, 3)], {"N@a.0": OPEN, "M@b.0": OPEN}, ["M == N"],
              [[(5, 3), (5, 3)], [(1, 3), (1, 3)]], [[(5, 3), (4, 3)]]),
    "joined": (Joined, [(4, 3), (4, 2)], {"N@a.0": OPEN, "M@b.0": OPEN}, ["M == N"],
               [[(5, 3), (5, 2)]], [[(5, 3), (4, 2)]]),
    "twice": (Product, [(4, 3), (4, 3)], {"N@a.0": OPEN, "M@b.0": "N"}, ["M == N"],
              [[(2, 3), (2, 3)]], [[(2, 3), (3, 3)]]),
    "attention": (Attention, [(2, 4, 8), (2, 5, 8), (2, 5, 8)],
                  {"L@q.1": (1, 64), "S@k.1": (1, 64), "T@v.1": (1, 64)}, ["T == S"],
                  [[(2, 3, 8), (2, 7, 8), (2, 7, 8)]], [[(2, 3, 8), (2, 7, 8), (2, 6, 8)]]),
}


@pytest.mark.part(2)
@pytest.mark.parametrize("name", CASES)
def test_open_sizes(name: str, tmp_path: Path) -> None:
    make, sample, dynamic, rules, good, bad = CASES[name]
    torch.manual_seed(0)
    model = make().eval()
    module = import_torch(model, tensors(*sample), dynamic=dynamic)
    verify_module(module)
    assert listing.required(module) == rules
    assert listing.required(serial.loads(encode.dumps(module, embed=True))) == rules
    built = compiled(optimised(module), tmp_path)
    names = [v.hint for v in module.graph.inputs]
    for shapes in good:
        xs = tensors(*shapes)
        feed = {n: x.numpy() for n, x in zip(names, xs, strict=True)}
        with torch.no_grad():
            want = model(*xs).numpy()
        np.testing.assert_allclose(*interp.run(module, feed).values(), want, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(*built.run(feed).values(), want, rtol=1e-4, atol=1e-5)
    for shapes in bad:
        feed = {n: x.numpy() for n, x in zip(names, tensors(*shapes), strict=True)}
        for run in (lambda feed=feed: interp.run(module, feed), lambda feed=feed: built.run(feed)):
            with pytest.raises(InputError, match="does not hold"):
                run()


def test_a_size_of_one_is_the_other_reading() -> None:
    module = import_torch(Product(), tensors((4, 3), (4, 3)),
                          dynamic={"N@a.0": OPEN, "M@b.0": (1, 1)})
    assert [str(v.type) for v in module.graph.inputs] == ["f32[N,3]", "f32[1,3]"]


def test_a_size_that_torch_cannot_express() -> None:
    with pytest.raises(UsageError, match=r"M = N\*K cannot be given to torch"):
        import_torch(Product(), tensors((4, 3), (4, 3)),
                     dynamic={"N@a.0": OPEN, "K@a.1": OPEN, "M@b.0": "N*K"})
