"""The forms of the plans of composites for which there are kernels; kernels define those of their
own ops."""

from __future__ import annotations

from graphtool.ir.plan import Form, Parameter

NV = Parameter("nv", "vectors across a panel of packed weights", least=1, most=16)
PANELS = Form("recurrence", (NV,))
NBITS = Form("linear_nbits")
