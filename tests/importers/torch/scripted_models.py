"""Small modules that use the parts of TorchScript, for the tests of its archives."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """A loop over a constant, a flag, and a function of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.flag = nn.Linear(4, 4), True

    def forward(self, x: Tensor, k: int = 2) -> Tensor:
        for _ in range(k):
            x = F.relu(self.fc(x))
        if self.flag:
            x = x + 1
        return x


class Net(nn.Module):
    """Submodules in containers, a buffer, a branch on a size, a dict as the result."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.block = Block()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.register_buffer("scale", torch.rand(4))
        self.offset = 3

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.block(self.stem(x).mean([2, 3]), k=3)
        for layer in self.layers:
            y = layer(y) * self.scale
        if x.size(0) > 1:
            y = y.view(x.size(0), -1)
        return {"a": y, "b": y + self.offset}


class Branch(nn.Module):
    """A branch that the data decide, with weights in it, and a number that comes out."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.fc(x)
        if bool(y.sum() > 0):
            y, z = y * 2, 1
        else:
            y, z = self.other(y) - 1, 2
        return y, z * y


class Nested(nn.Module):
    """A branch in a branch, one side of which is the operand."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Branch()

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.mean() > 0):
            y, _ = self.inner(x)
            if bool(y.max() > 1):
                y = y - 1
        else:
            y = x
        return y


class While(nn.Module):
    """A loop that the data end, which counts its iterations."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        n = 0
        while bool(x.abs().sum() < 100.0):
            x = x * 2 + self.fc.bias
            n += 1
        return x, n


class Times(nn.Module):
    """A loop whose trip count is an input."""

    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        for i in range(int(n)):
            x = x * 1.5 + i
        return x


class Lists(nn.Module):
    """Lists, `break` and `continue`, and a list as a result."""

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        out = torch.jit.annotate(list[Tensor], [])
        for i in range(x.size(0)):
            if i == 3:
                break
            if i % 2 == 1:
                continue
            out.append(x[i])
        return torch.stack(out), [o.sum() for o in out]


class State(nn.Module):
    """Buffers that a run changes, in place and by assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        return x * self.count + self.mean


class Options(nn.Module):
    """Optional tensors, defaults, dicts, texts, an assertion, element types."""

    def forward(self, x: Tensor, mask: Tensor | None = None, k: int = 3,
                w: float = 0.5) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if mask is not None:
            x = x * mask
        d: dict[str, Tensor] = {"x": x}
        d["y"] = x * w
        if "x" in d:
            x = d["x"] + d["y"]
        a, b = x.chunk(2, 1)
        assert a.size(1) > 0, "empty"
        counts = torch.zeros(2, k, dtype=torch.int64) + len(f"{k}")
        return x[:, :k], a.to(torch.float64), b.unsqueeze(0).expand(2, -1, -1), counts


class Recurrent(nn.Module):
    """What has overloads of forward in TorchScript, and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return self.lstm(x)[0], self.layer(y)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x))


class Checked(nn.Module):
    """Raises for some data, and for some shapes."""

    def forward(self, x: Tensor) -> Tensor:
        if bool((x > 1e9).any()):
            raise ValueError("too large")
        if x.dim() != 2:
            raise ValueError("a matrix is wanted")
        return x * 2


class Uneven(nn.Module):
    """The sides of the branch differ in their shape."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x[:1]
        return x


class Grown(nn.Module):
    """A list that one side of a branch makes longer."""

    def forward(self, x: Tensor) -> Tensor:
        out = [x]
        if bool(x.sum() > 0):
            out.append(x * 2)
        return out[-1]


class Counter(nn.Module):
    """State that is no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        return x * self.n
