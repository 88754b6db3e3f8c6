"""Ranges of seeds, and the spans of them that a process works through at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.lab.fuzz.processes import Span

CHUNK = 24  # seeds of a span, and of a call of the compiler at most


def chosen(span: Span, share: float) -> bool:
    """Whether the graphs of the span are compiled, if this share of all are."""
    at = span[0] // CHUNK
    return int((at + 1) * share) > int(at * share)


def merged(ranges: Iterable[Span]) -> list[Span]:
    """The ranges in order, those that touch as one."""
    out: list[Span] = []
    for a, b in sorted(ranges):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        else:
            out.append((a, b))
    return out


def spans(first: int, end: int, size: int, done: Sequence[Span] = ()) -> Iterator[Span]:
    """The seeds from `first` to `end` that are not done, in spans that begin at multiples of
    `size`."""
    at = first
    for a, b in [*merged(done), (end, end)]:
        stop = min(a, end)
        while at < stop:
            upto = min(at - at % size + size, stop)
            yield at, upto
            at = upto
        at = max(at, b)


def seeds(text: str) -> list[Span]:
    """`7,30-39` as ranges."""
    def one(part: str) -> Span:
        first, _, last = part.partition("-")
        return int(first), int(last or first) + 1
    return merged(one(p) for p in text.split(",") if p)
