"""torch.compile by graphtool, by inductor, and eager torch: forward passes and training steps.

The contestants take turns within one process on one thread, so that all meet the same machine.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks import tables, work
from benchmarks.work import Journal, Row

HEAD = ("model", "what", "eager µs", "inductor", "graphtool", "graphtool, frozen")
Call = Callable[[], Any]
Made = tuple[Callable[[], Any], Callable[[], Any]]  # of a model with ten results, of its input


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=30, help="turns of each contestant")
    parser.add_argument("--of", type=lambda s: s.split(","), help="these only")
    parser.add_argument("--what", choices=("forward", "step"), help="this only")


def main(options: argparse.Namespace) -> int:
    import torch
    torch.set_num_threads(1)
    journal = Journal(work.results("dynamo.jsonl"), lambda r: (r["model"], r["what"]))
    made = models()
    for name in options.of or made:
        for what in ("forward", "step") if options.what is None else (options.what,):
            calls = prepared(what, *made[name])
            journal.add({"model": name, "what": what, **timed(calls, options.rounds),
                         **work.stamp()})
            print(" ".join(_cells(journal.rows()[name, what])), flush=True)
    have = journal.rows()
    rows = [have[key] for name in made for what in ("forward", "step")
            if (key := (name, what)) in have]
    text = "\n".join([
        "# torch.compile: graphtool beside inductor and eager torch", "",
        f"{work.stamp()['date']}, {work.stamp()['cpu']}, one thread; `{options.command_line}`. "
        "Medians of interleaved runs; the columns of compilers are times as a share of eager's.",
        "", tables.markdown(HEAD, [_cells(r) for r in rows]), "", _means(rows), ""])
    work.results("dynamo.md").write_text(text)
    print(text)
    return 0


def _means(rows: list[Row]) -> str:
    shares = (f"{way} {statistics.geometric_mean(r[way] / r['eager'] for r in rows):.2f}"
              for way in ("inductor", "graphtool"))
    return f"Geometric means of the shares: {', '.join(shares)}."


def models() -> dict[str, Made]:
    import torch
    from torch import nn

    def conv(a: int, b: int, step: int) -> list[Any]:
        return [nn.Conv2d(a, b, 3, step, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
    return {
        "mlp": (lambda: nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512),
                                      nn.ReLU(), nn.Linear(512, 10)),
                lambda: torch.randn(32, 256)),
        "conv net": (lambda: nn.Sequential(
            *conv(3, 32, 1), *conv(32, 64, 2), *conv(64, 64, 1), *conv(64, 128, 2),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)),
            lambda: torch.randn(8, 3, 32, 32)),
        "lstm": (lambda: nn.Sequential(nn.LSTM(64, 128, batch_first=True), _last(),
                                       nn.Linear(128, 10)), lambda: torch.randn(16, 32, 64)),
        "transformer": (lambda: nn.Sequential(
            nn.TransformerEncoder(nn.TransformerEncoderLayer(
                128, 4, 256, dropout=0.0, batch_first=True), 2), nn.Flatten(),
            nn.Linear(128 * 32, 10)), lambda: torch.randn(4, 32, 128)),
        "resnet10t": (lambda: _timm("resnet10t"), lambda: torch.randn(2, 3, 64, 64)),
        "mobilenetv3": (lambda: _timm("mobilenetv3_small_050"), lambda: torch.randn(2, 3, 64, 64)),
        "vit": (lambda: _timm("vit_tiny_patch16_224", img_size=64, depth=4),
                lambda: torch.randn(2, 3, 64, 64)),
        "bert": (lambda: _text("Bert", num_hidden_layers=2, num_attention_heads=4), _ids),
        "gpt2": (lambda: _text("GPT2", n_layer=2, n_head=4, n_embd=128, use_cache=False), _ids),
        "llama": (lambda: _text("Llama", num_hidden_layers=2, num_attention_heads=4,
                                num_key_value_heads=2, use_cache=False), _ids),
    }


def _last() -> Any:
    """The last step of what a recurrence gives."""
    from torch import nn

    class Last(nn.Module):
        def forward(self, found: Any) -> Any:
            return found[0][:, -1]
    return Last()


def _timm(name: str, **settings: Any) -> Any:
    from benchmarks.models.vision import declare_operators
    declare_operators()
    import timm
    return timm.create_model(name, num_classes=10, **settings)


def _ids() -> Any:
    import torch
    return torch.randint(0, 200, (4, 32))


def _text(family: str, **settings: Any) -> Any:
    """A small model of the family over token ids, its mean before a linear layer."""
    from torch import nn

    from benchmarks.models.vision import declare_operators
    declare_operators()
    import transformers

    size = {} if family == "GPT2" else {"hidden_size": 128, "intermediate_size": 256}
    config = getattr(transformers, f"{family}Config")(
        vocab_size=200, max_position_embeddings=64, **size, **settings)
    for name in vars(config):
        if name.endswith(("dropout", "dropout_prob", "pdrop")):
            setattr(config, name, 0.0)

    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = getattr(transformers, f"{family}Model")(config)
            self.head = nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.body(x)[0].mean(1))
    return Mean()


def prepared(what: str, make: Callable[[], Any], inputs: Callable[[], Any]) -> dict[str, Call]:
    """A call of each contestant, compiled and warm."""
    import torch

    from graphtool.integrations.torch_compile import graphtool_backend
    torch.manual_seed(0)
    model, x = make().train(what == "step"), inputs()
    ways: dict[str, dict[str, Any] | None] = {
        "eager": None, "inductor": {"backend": "inductor"},
        "graphtool": {"backend": graphtool_backend}}
    if what == "forward":
        ways["frozen"] = {"backend": graphtool_backend, "options": {"freeze": True}}
    calls = {}
    for way, settings in ways.items():
        torch._dynamo.reset()
        twin = copy.deepcopy(model)
        run = twin if settings is None else torch.compile(twin, dynamic=False, **settings)
        calls[way] = _forward(run, x) if what == "forward" else _step(run, twin, x)
        for _ in range(3):
            calls[way]()
    return calls


def timed(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Microseconds of each, the median of its turns."""
    times: dict[str, list[float]] = {way: [] for way in calls}
    for _ in range(rounds):
        for way, call in calls.items():
            start = time.perf_counter()
            call()
            times[way].append(time.perf_counter() - start)
    return {way: statistics.median(t) * 1e6 for way, t in times.items()}


def _forward(run: Any, x: Any) -> Callable[[], Any]:
    import torch

    def call() -> Any:
        with torch.no_grad():
            return run(x)
    return call


def _step(run: Any, model: Any, x: Any) -> Callable[[], Any]:
    import torch
    y = torch.arange(len(x)) % 10
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def call() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(run(x), y).backward()
        optimizer.step()
    return call


def _cells(row: Row) -> list[str]:
    eager = row["eager"]
    shares = [f"{row[w] / eager:.2f}" if w in row else tables.GAP
              for w in ("inductor", "graphtool", "frozen")]
    return [row["model"], row["what"], f"{eager:.0f}", *shares]
