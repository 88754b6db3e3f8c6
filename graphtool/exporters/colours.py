"""Fill and stroke colours for each kind of box; black text is readable on every fill."""

from __future__ import annotations

FILL = {"input": "#e8f1fb", "output": "#e8f1fb", "constant": "#f2f2f2", "compute": "#fdebd0",
        "data": "#e5f5e0", "shape": "#f0e9f7", "control": "#fbe3e4", "memory": "#e0f3f3",
        "group": "#fff6cc"}
STROKE = {"input": "#3b75af", "output": "#3b75af", "constant": "#888888", "compute": "#c77b1e",
          "data": "#4a9a3f", "shape": "#8457aa", "control": "#c0444a", "memory": "#2b8c8c",
          "group": "#b59a00"}
