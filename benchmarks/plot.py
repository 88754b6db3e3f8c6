"""The plot of a timing run as SVG: a bar a model, as long as its time over the best peer's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 860, 210, 70, 56, 13, 9
COLOURS = ("#2f6f8f", "#c07a2c", "#6b8f3a", "#8a4f7d")


def bars(title: str, series: Mapping[str, Mapping[str, float]], limit: float = 2.0) -> str:
    """SVG text. `series` is {name of a series: {model: time over the best peer's}}.

    Shorter than the line at 1 is faster than every peer; bars past `limit` are cut off.
    """
    models = list(dict.fromkeys(m for values in series.values() for m in values))
    step = len(series) * BAR + GAP
    height = TOP + len(models) * step + 30
    scale = (WIDTH - LEFT - RIGHT) / limit
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="12" y="20" font-size="15">{escape(title)}</text>', *_legend(list(series))]
    for i, model in enumerate(models):
        y = TOP + i * step
        out.append(f'<text x="{LEFT - 8}" y="{y + len(series) * BAR / 2 + 4:g}" '
                   f'text-anchor="end">{escape(model)}</text>')
        for k, values in enumerate(series.values()):
            if model in values:
                out += _bar(values[model], y + k * BAR, COLOURS[k % len(COLOURS)], scale, limit)
    one, bottom = LEFT + scale, height - 26
    out += [f'<line x1="{one:g}" x2="{one:g}" y1="{TOP - 6}" y2="{bottom}" stroke="#333" '
            'stroke-dasharray="4 3"/>',
            f'<text x="{one:g}" y="{bottom + 14}" text-anchor="middle">best peer</text>', "</svg>"]
    return "\n".join(out) + "\n"


def _bar(value: float, y: float, colour: str, scale: float, limit: float) -> list[str]:
    length = min(value, limit) * scale
    return [f'<rect x="{LEFT}" y="{y:g}" width="{length:.1f}" height="{BAR - 2}" '
            f'fill="{colour}"/>',
            f'<text x="{LEFT + length + 4:.1f}" y="{y + BAR - 3:g}" font-size="10">'
            f'{value:.2f}</text>']


def _legend(names: Sequence[str]) -> list[str]:
    out = []
    for k, name in enumerate(names):
        x = LEFT + 130 * k
        out += [f'<rect x="{x}" y="32" width="10" height="10" fill="{COLOURS[k % len(COLOURS)]}"/>',
                f'<text x="{x + 15}" y="41">{escape(name)}</text>']
    return out
