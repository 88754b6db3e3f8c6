"""The page of speed: one row for each stored table of ratios, with the figures in the table."""

from __future__ import annotations

import re
from pathlib import Path

from docs.generators.markdown import table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
ROWS = (  # what is timed, beside which peers, the file in benchmarks/results/
    ("float32, the models of the plot", "onnxruntime, OpenVINO", "zoo.md"),
    ("float32, further models", "onnxruntime, OpenVINO", "extra.md"),
    ("float32, beside compilers", "torch, torch.compile, JAX, IREE, TVM untuned", "peers.md"),
    ("float32, ten models of timm drawn by a seed", "onnxruntime, OpenVINO", "xeon/drawn.md"),
    ("float32, twelve more", "onnxruntime, OpenVINO", "xeon/fresh.md"),
    ("float32, ten more, by parts where that is faster", "onnxruntime, OpenVINO",
     "xeon/fresh2.md"),
    ("float32, eight more", "onnxruntime, OpenVINO", "xeon/fresh3.md"),
    ("int8", "onnxruntime, OpenVINO", "int8.md"),
    ("int8, with matrix units", "onnxruntime, OpenVINO", "xeon/int8.md"),
    ("bfloat16, with matrix units", "OpenVINO in bfloat16", "xeon/narrow.md"),
    ("training steps, float32", "torch, torch.compile, JAX", "training.md"),
    ("training steps, float32", "torch, torch.compile", "xeon/training.md"),
)
OTHERS = (
    ("trained networks that packages carry, with open sizes", "shipped.md"),
    ("a language model with weights of 4 bits", "xeon/llm.md"),
    ("models quantised by several tools: error and time", "quantise.md"),
    ("single kernels", "kernels.md"),
    ("peak memory", "memory.md"),
    ("growth of batch, sequence, width and depth", "scaling.md"),
    ("beside processes that use the same processors", "xeon/load.md"),
)
_MEAN = re.compile(r"^Geometric mean of the ratio over (\d+) models: ([\d.]+); least ([\d.]+)\.",
                   re.M)


def page() -> str:
    rows = [_row(*row) for row in ROWS]
    others = table(["what", "table"], [[what, f"`{file}`"] for what, file in OTHERS])
    head = ["what", "beside", "models", "1 thread", "2 threads", "machine, date", "table"]
    return f"""# Speed

Each ratio is the best peer's time over graphtool's, per model: the geometric mean over the models,
and the least. More than 1: graphtool is faster. Contestants take turns on an idle machine;
the figures are medians. The tables are files in `benchmarks/results/`, with the command that makes
each one again.

{table(head, rows)}
Other measurements:

{others}

[The kernels](../explanation/kernels.md) says what bounds these figures, [testing](../testing.md)
how the results are checked.
"""


def _row(what: str, peers: str, file: str) -> list[str]:
    text = (RESULTS / file).read_text()
    means = _MEAN.findall(text)
    cells = [f"{mean} ({least})" for _, mean, least in means[:2]]
    date, machine = re.split(r", ", text.splitlines()[2].split(";")[0], maxsplit=1)
    name = "Intel Xeon with AMX" if "Intel" in machine else machine.split(",")[0]
    return [what, peers, means[0][0], *cells, *["–"] * (2 - len(cells)), f"{name}, {date}",
            f"`{file}`"]
