"""The plot of a table of times as SVG: for each model a bar a contestant, in light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 860, 190, 60, 60, 9, 7
LIGHT = ("#14639e", "#d5a253", "#a9b48c", "#b497ac", "#9fb7bd", "#c9b8a4", "#aaa")
DARK = ("#5cb3f2", "#9a7231", "#6f7b51", "#7c5f74", "#5d7a82", "#83715b", "#777")


def bars(title: str, times: Mapping[str, Mapping[str, float]], limit: float = 4.0) -> str:
    """SVG text. `times` is {model: {contestant: time}}, in any unit.

    A bar is a contestant's time over the first contestant's of this model, cut off at `limit`.
    A model without a time of the first contestant is left out.
    """
    names = list(dict.fromkeys(n for row in times.values() for n in row))
    models = [m for m in times if names[0] in times[m]]
    step = len(names) * BAR + GAP
    height = TOP + len(models) * step + 8
    scale = (WIDTH - LEFT - RIGHT) / limit
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
           _style(len(names)),
           f'<text x="12" y="20" font-size="15">{escape(title)}</text>', *_legend(names)]
    for i, model in enumerate(models):
        y, first = TOP + i * step, times[model][names[0]]
        out.append(f'<text x="{LEFT - 8}" y="{y + len(names) * BAR / 2 + 4:g}" '
                   f'text-anchor="end">{escape(model)}</text>')
        for k, name in enumerate(names):
            if name in times[model]:
                out += _bar(times[model][name] / first, y + k * BAR, k, scale, limit)
    return "\n".join([*out, "</svg>"]) + "\n"


def _style(count: int) -> str:
    """Text and bars have the colours of the reader's theme; the background is the page's."""
    def rules(text: str, colours: Sequence[str]) -> str:
        return f"text {{ fill: {text} }} " + " ".join(
            f".c{k} {{ fill: {colours[k % len(colours)]} }}" for k in range(count))
    return (f"<style>{rules('#1f2328', LIGHT)}\n"
            f"@media (prefers-color-scheme: dark) {{ {rules('#e6edf3', DARK)} }}</style>")


def _bar(value: float, y: float, k: int, scale: float, limit: float) -> list[str]:
    length = min(value, limit) * scale
    out = [f'<rect class="c{k}" x="{LEFT}" y="{y:g}" width="{length:.1f}" height="{BAR - 1}"/>']
    if k:
        out.append(f'<text x="{LEFT + length + 4:.1f}" y="{y + BAR - 1:g}" font-size="9">'
                   f'{value:.2f}</text>')
    return out


def _legend(names: Sequence[str]) -> list[str]:
    out = []
    for k, name in enumerate(names):
        x = LEFT + 130 * k
        out += [f'<rect class="c{k}" x="{x}" y="34" width="10" height="10"/>',
                f'<text x="{x + 15}" y="43">{escape(name)}</text>']
    return out
