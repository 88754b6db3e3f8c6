"""The target zen3: one row that says what code for AMD's Zen 3 may assume, and what things cost."""

from __future__ import annotations

from graphtool.extend import Target, add_target, spelled

__version__ = "1.0"

add_target(Target(
    "zen3", "AMD Zen 3 with AVX2", lanes=8, mr=6, nv=2, registers=16, pair=(2, 1),
    l1=32 << 10, l2=512 << 10, l3=32 << 20, mhz=4500, bandwidth=(280.0, 140.0, 100.0, 25.0),
    flags=spelled("znver3"), machines=("x86_64", "amd64"),
    cross="python -m ziglang cc -target x86_64-linux-musl"))
