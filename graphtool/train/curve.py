"""The loss curve of a log as SVG: steps in grey, epochs in colour."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

WIDTH, HEIGHT, EDGE = 720, 400, 48
POINTS = 600  # of the line of steps; more are averaged
Point = tuple[float, float]


def draw(log: Path) -> str:
    """The SVG text of a log.jsonl; without one, as before the first step, there are no points."""
    lines = log.read_text().splitlines() if log.exists() else []
    rows = [json.loads(line) for line in lines]
    steps = [(float(r["step"]), float(r["loss"])) for r in rows if "step" in r]
    epochs = [r for r in rows if "step" not in r]
    val = [(float(r["steps"]), float(r["val_loss"])) for r in epochs if "val_loss" in r]
    train = [(float(r["steps"]), float(r["train_loss"])) for r in epochs]
    return curve([("steps", "#bbb", 1.0, _thinned(steps)), ("training", "#1f77b4", 2.0, train),
                  ("validation", "#d62728", 2.0, val)])


def _thinned(points: Sequence[Point]) -> list[Point]:
    size = max(1, math.ceil(len(points) / POINTS))
    parts = [points[i:i + size] for i in range(0, len(points), size)]
    return [(sum(x for x, _ in p) / len(p), sum(y for _, y in p) / len(p)) for p in parts]


def curve(lines: Sequence[tuple[str, str, float, Sequence[Point]]]) -> str:
    """The SVG text of lines (name, colour, width, points) with common axes."""
    shown = [(n, c, w, [p for p in points if math.isfinite(p[1])]) for n, c, w, points in lines]
    every = [p for *_, points in shown for p in points] or [(0.0, 0.0)]
    right = max(x for x, _ in every) or 1.0
    low, high = min(0.0, *(y for _, y in every)), max(y for _, y in every)
    high = high if high > low else low + 1

    def place(x: float, y: float) -> str:
        px = EDGE + x / right * (WIDTH - 2 * EDGE)
        py = HEIGHT - EDGE - (y - low) / (high - low) * (HEIGHT - 2 * EDGE)
        return f"{px:.1f},{py:.1f}"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for i in range(5):
        y = low + (high - low) * i / 4
        at = place(0, y).split(",")[1]
        out.append(f'<line x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{at}" y2="{at}" stroke="#eee"/>')
        out.append(f'<text x="{EDGE - 6}" y="{at}" text-anchor="end">{y:.3g}</text>')
    for i, (name, colour, width, points) in enumerate(n for n in shown if n[3]):
        path = " ".join(place(*p) for p in points)
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" '
                   f'points="{path}"/>')
        out.append(f'<text x="{WIDTH - EDGE}" y="{EDGE + 16 * i}" fill="{colour}" '
                   f'text-anchor="end">{name}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">step (of '
               f'{right:.0f})</text>')
    return "\n".join([*out, "</svg>", ""])
