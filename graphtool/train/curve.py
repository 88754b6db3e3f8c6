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
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    rows = [json.loads(line) for line in lines]
    steps = [(float(r["step"]), float(r["loss"])) for r in rows if "step" in r]
    epochs = [r for r in rows if "step" not in r]
    val = [(float(r["steps"]), float(r["val_loss"])) for r in epochs if "val_loss" in r]
    train = [(float(r["steps"]), float(r["train_loss"])) for r in epochs]
    return curve([("each step", "#bbb", 1.0, _thinned(steps)),
                  ("training, each epoch", "#1f77b4", 2.0, train),
                  ("validation", "#d62728", 2.0, val)])


def _thinned(points: Sequence[Point]) -> list[Point]:
    size = max(1, math.ceil(len(points) / POINTS))
    parts = [points[i:i + size] for i in range(0, len(points), size)]
    return [(sum(x for x, _ in p) / len(p), sum(y for _, y in p) / len(p)) for p in parts]


def step_of(span: float, most: int) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten that divides the span into at most `most`
    steps."""
    steps = (float(f"{m}e{k}") for k in range(-307, 308) for m in (1, 2, 5))
    return next((s for s in steps if span <= s * most), 5e307)


def curve(lines: Sequence[tuple[str, str, float, Sequence[Point]]]) -> str:
    """The SVG text of lines (name, colour, width, points) with common axes, the legend above."""
    finite = [(n, c, w, [p for p in points if math.isfinite(p[1])]) for n, c, w, points in lines]
    shown = [line for line in finite if line[3]]
    every = [p for *_, points in shown for p in points] or [(0.0, 0.0)]
    right = max(x for x, _ in every) or 1.0
    low, high = min(0.0, *(y for _, y in every)), max(y for _, y in every)
    across, up = max(1.0, step_of(right, 8)), step_of(high - low if high > low else 1.0, 5)
    first, last = math.floor(low / up), math.ceil((high if high > low else low + 1) / up)
    low, high = first * up, last * up  # the axis ends at ticks

    def place(x: float, y: float) -> tuple[str, str]:
        return (f"{EDGE + x / right * (WIDTH - 2 * EDGE):.1f}",
                f"{HEIGHT - EDGE - (y - low) / (high - low) * (HEIGHT - 2 * EDGE):.1f}")
    bottom, end = HEIGHT - EDGE, WIDTH - EDGE
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for i in range(first, last + 1):
        y = place(0, i * up)[1]
        out.append(f'<line x1="{EDGE}" x2="{end}" y1="{y}" y2="{y}" stroke="#eee"/>')
        out.append(f'<text x="{EDGE - 6}" y="{y}" dy="4" text-anchor="end">{i * up:g}</text>')
    for i in range(math.floor(right / across) + 1):
        x = place(i * across, 0)[0]
        out.append(f'<line x1="{x}" x2="{x}" y1="{bottom}" y2="{bottom + 5}" stroke="#888"/>')
        out.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{i * across:g}</text>')
    out.append(f'<path fill="none" stroke="#888" d="M{EDGE} {EDGE}V{bottom}H{end}"/>')
    for i, (name, colour, width, points) in enumerate(shown):
        path = " ".join(",".join(place(*p)) for p in points)
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" '
                   f'points="{path}"/>')
        if len(points) == 1:  # a line of one point cannot be seen
            x, y = place(*points[0])
            out.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        if len(shown) > 1:
            at = EDGE + 150 * i
            out.append(f'<line x1="{at}" x2="{at + 20}" y1="24" y2="24" stroke="{colour}" '
                       f'stroke-width="{width}"/>')
            out.append(f'<text x="{at + 26}" y="28">{name}</text>')
    out.append(f'<text x="{WIDTH // 2}" y="{HEIGHT - 10}" text-anchor="middle">step</text>')
    out.append(f'<text transform="translate(12 {HEIGHT // 2}) rotate(-90)" '
               'text-anchor="middle">loss</text>')
    return "\n".join([*out, "</svg>", ""])
