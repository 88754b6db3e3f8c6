"""Which candidates a site has, and the choice among them: tuned if the tuning file knows the site,
else the one that should cost least.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphtool.errors import UsageError
from graphtool.kernels.choice import (
    BLOCK,
    Alone,
    Attention,
    Conv,
    Pool,
    Product,
    Recurrence,
    Site,
)
from graphtool.kernels.choice.cost import cost, held, panel
from graphtool.kernels.choice.tuning import Tuning
from graphtool.plan import Choice, Plan, choice
from graphtool.target import Target, tile_rows

WINOGRAD_LEAST = 16  # input and output channels from which its transforms pay
HELD = 5e-6  # microseconds that a byte of weights is worth: a MB must save 5 of them
BFLOAT16 = 1  # as a site says it
UNROLLED = 64  # columns of a block at most: a loop over more is no straight code
UNTILED = 4  # queries from which attention packs its keys and values
KEYS = (1024, 512)  # that attention may take at a time, where there are twice as many
WIDEST = 8  # vectors of a panel of recurrent weights
MARGIN = 0.03  # a rival must be expected to be so much faster before it displaces the usual one


@dataclass(frozen=True)
class Rules:
    """What may be chosen at all. `winograd`: the largest output tile, 0 for none.

    `precision` is the class of numerics that this comes from; `rules_of` knows the classes.
    """

    precision: str = "default"
    winograd: int = 4
    bf16: bool = False
    kernels: str = "generated"  # generated | blas | auto
    tuning: Tuning = field(default_factory=Tuning)


PRECISIONS = {  # class: (largest Winograd tile, bfloat16 products)
    "strict": (2, False), "default": (4, False), "fast": (4, True)}
KERNELS = ("generated", "blas", "auto")


def rules_of(precision: str = "default", kernels: str = "generated",
             tuning: Tuning | None = None) -> Rules:
    """The rules of a class of numerics. Raises UsageError GT0633, GT0634 for unknown names."""
    if precision not in PRECISIONS:
        raise UsageError("GT0633", f"unknown precision {precision!r}", hint=", ".join(PRECISIONS))
    if kernels not in KERNELS:
        raise UsageError("GT0634", f"unknown kernels {kernels!r}", hint=", ".join(KERNELS))
    winograd, bf16 = PRECISIONS[precision]
    return Rules(precision, winograd, bf16, kernels, tuning or Tuning())


def candidates(site: Site, target: Target, rules: Rules) -> list[Plan]:
    """The alternatives; where costs are equal the earlier one is taken."""
    match site:
        case Conv():
            return _conv(site, target, rules)
        case Product():
            return _product(site, target, rules)
        case Attention():
            return _attention(site, target)
        case Recurrence():
            return _panels(site, target)
        case Pool():  # a loop over each window, or columns that neighbouring windows share
            fits = site.c >= target.lanes and site.columns <= UNROLLED
            return [Plan("windows"), *([Plan("columns")] if fits else ())]


def weighed(site: Site, c: Plan, us: float, target: Target) -> float:
    """What candidates are compared by: the time, and what the bytes of weights are worth."""
    return us + HELD * held(site, c, target)


def choose(site: Site, target: Target, rules: Rules) -> Choice:
    """The best candidate of a site by measurement if there is one, else by cost.

    Weights count by what they save: a kernel that unfolds them must be so much faster.
    """
    def weight(rival: tuple[Plan, float]) -> float:
        return weighed(site, rival[0], rival[1], target)
    allowed = candidates(site, target, rules)
    measured = [(c, us) for c, us in rules.tuning.find(site, target) if c in allowed]
    if measured:
        return choice(str(site), "tuned", dict(sorted(measured, key=weight)))
    margin = MARGIN if isinstance(site, Alone) else 0.0  # no width of a panel is the usual
    ranked = [(c, cost(site, c, target) * (1 if i == 0 else 1 + margin))
              for i, c in enumerate(allowed)]
    if rules.kernels == "blas" and any(c.kind == "blas" for c in allowed):
        ranked.sort(key=lambda r: (r[0].kind != "blas", weight(r)))
    else:
        ranked = [r for r in ranked if r[0].kind != "blas"]
        ranked.sort(key=weight)
    return choice(str(site), "cost", dict(ranked))


def _conv(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    if s.integer:
        return _conv_integer(s, target, rules)
    if s.groups == s.o == s.c:
        return _depthwise(s, target)
    nv = 1 if s.o // s.groups <= target.lanes else target.nv
    if s.half == BFLOAT16 and target.bf16:  # of numbers that are bfloat16 dot products lose nothing
        return [Plan("bf16", (("nv", nv), ("rows", rows))) for rows in (1, 0)]
    out = [Plan("direct", (("nv", width), ("rows", rows)))
           for width in _widths(s.o // s.groups, target) for rows in (1, 0)]
    if rules.bf16 and target.bf16 and s.constant and not s.half:
        out += [Plan("bf16", c.parameters) for c in out]
    # weights that training moves: what a tile of 4 loses would add up over the steps
    tiles = _winograd(s, target, rules, (4, 2) if s.constant else (2,))
    return out + (tiles or _lines(s, target, rules))


def _conv_integer(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """Sums of integers are exact by any of them; the largest tile that holds those of the filters
    comes with the rules.
    """
    if s.groups == s.o == s.c:
        return [Plan("depthwise", (("high", high),)) for high in ((2, 1) if s.dh == 1 else
                                                                       (1,))]
    out = [Plan("direct", (("nv", nv),)) for nv in _widths(s.o // s.groups, target)]
    return out + _winograd(s, target, rules, (4, 2))


def _winograd(s: Conv, target: Target, rules: Rules, tiles: tuple[int, ...]) -> list[Plan]:
    if (s.kh, s.kw) != (3, 3) or not s.sh == s.sw == s.dh == s.dw == 1 or (
            not _transforms_pay(s, target)):
        return []
    return [w for m in tiles if m <= min(rules.winograd, s.h, s.w) or m == 2 <= rules.winograd
            for w in _groups(s, m, target.threads)]


def _transforms_pay(s: Conv, target: Target) -> bool:
    """Whether channels are many enough; groups must be of whole panels besides."""
    if min(s.o, s.c) < WINOGRAD_LEAST * s.groups:
        return False
    if s.groups > 1 and (s.integer or not s.constant):
        return False
    return panel(s.o // s.groups, s.groups, target) > 0


def _lines(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """Threes of taps along one axis, of any window of stride 1 that has so many."""
    if max(s.kh, s.kw) < 3 or min(s.o, s.c) < WINOGRAD_LEAST or s.half or not s.constant or not (
            s.sh == s.sw == s.groups == 1):
        return []
    return [Plan("line", (("tile", m), ("nv", nv), ("group", g)))
            for m in (4, 2) if m <= rules.winograd for nv in _widths(s.o, target)
            for g in (28, 14)]


def _widths(columns: int, target: Target) -> list[int]:
    """Vectors of a panel: the usual number, and those that leave less of the last panel empty."""
    usual = 1 if columns <= target.lanes else target.nv

    def filled(nv: int) -> int:
        return -(-columns // (nv * target.lanes)) * nv
    return [usual, *(nv for nv in (3, 1) if target.lanes > 1 and filled(nv) < filled(usual))]


def _groups(s: Conv, m: int, threads: int) -> list[Plan]:
    """All tiles at once if they are few, else groups that leave the planes in the cache.

    Threads that share all tiles split the weights, and each reads a part of them.
    """
    tiles = s.n * -(-s.h // m) * -(-s.w // m)
    given = [(g, 0) for g in ((28, 16) if tiles > 28 else ())]
    if tiles <= 64:
        given = [(tiles, shared) for shared in ((0, 1) if threads > 1 else (0,))] + given
    return [Plan("winograd", (("tile", m), ("group", g), *((("shared", 1),) * shared)))
            for g, shared in given]


def _depthwise(s: Conv, target: Target) -> list[Plan]:
    """Vectors of channels in a sweep, and output rows of a register block: two where the registers
    hold them, or each sum waits for itself. All channels in one sweep read an image in order; of
    large windows more would be read again than the first cache holds.
    """
    every = -(-s.c // target.lanes)
    tall = s.sh == s.sw == 1 and 2 * BLOCK + s.kw + 1 <= target.registers
    sweeps = [1, *((2,) if tall else ()), 4, *((every,) if every > 4 and s.kh <= 3 else ())]
    return [Plan("depthwise", (("block", b), ("high", high)))
            for b in sweeps if b == 1 or (b - 1) * target.lanes < s.c
            for high in ((2, 1) if tall else (1,))]


def _product(s: Product, target: Target, rules: Rules) -> list[Plan]:
    widths = [1 if s.n <= target.lanes else target.nv]
    if s.half == BFLOAT16 and target.bf16:
        return [Plan("bf16", (("nv", widths[0]),))]
    if s.m <= 3 and s.n >= 4 * target.lanes:
        widths += [nv for nv in (8, 7, 6, 5, 4) if nv != widths[0]]  # the one that is filled best
    else:
        widths = _widths(s.n, target)
    if s.integer:
        return [Plan("gemm", (("nv", nv),)) for nv in widths]
    kept = [640, 0] if s.fixed and s.m * s.k * 4 > 640 << 10 else [640]
    splits = [0]
    if target.threads > 1 and s.batch == 1 and s.fixed and not s.across:
        splits = [1, 2] if s.m * (s.k + s.n) >= s.k * s.n else [2, 1]
    out = []
    for nv in widths:
        for split in splits:
            for resident in kept:
                given = {"nv": nv, "split": split, "resident": resident}
                dull = {k for k, n in (("split", splits), ("resident", kept)) if len(n) == 1}
                out.append(Plan("gemm", tuple(
                    (k, v) for k, v in given.items() if k not in dull)))
    plain = s.constant and not s.across and s.batch == 1 and not s.half
    if rules.bf16 and plain and target.bf16:
        out.append(Plan("bf16", (("nv", widths[0]),)))
    if rules.kernels != "generated" and plain and s.fixed and s.m >= 16 and s.n >= 64 and s.k >= 64:
        out.append(Plan("blas"))
    return out


def _attention(s: Attention, target: Target) -> list[Plan]:
    """Panels as of other products. All keys at a time, or so many that the scores of a block stay
    near; as many rows as the registers hold, or half of them where threads then share more evenly.
    Few queries are multiplied without tiles: there is nothing to choose.
    """
    def of(keys: int, nv: int, rows: int) -> Plan:
        return Plan("attention", (("keys", keys), ("nv", nv), ("rows", rows)))
    if s.fixed and s.s < UNTILED:
        return [of(0, target.nv, tile_rows(target, target.nv, s.s))]
    out = []
    for nv in _widths(s.v, target):
        most = tile_rows(target, nv, s.s)
        uneven = s.heads * -(-s.s // most) % target.threads and most > 1
        out += [of(keys, nv, rows) for rows in (most, *((-(-most // 2),) if uneven else ()))
                for keys in (0, *(n for n in KEYS if s.t >= 2 * n))]
    return out


def _panels(s: Recurrence, target: Target) -> list[Plan]:
    """Vectors of a panel, wider ones first: those whose tile takes all rows of a small batch. A
    part that begins a panel of its own wants a width that divides it.
    """
    widths = [v for v in range(WIDEST if s.few else 3, 0, -1)
              if v == 1 or tile_rows(target, v, None) >= (s.few or 1)]
    if s.parts > 1:
        widths = [v for v in widths if s.n % (v * target.lanes) == 0] or widths
    return [Plan("panels", (("nv", v),)) for v in widths]
