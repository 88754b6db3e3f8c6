"""Upgrades of NAME.program.json, oldest first; the policy stands in io/versions.py."""

from __future__ import annotations

import re
from typing import Any

from graphtool.io.upgrades import Document, Upgrade, names, plans

_FLAGS = ("BY_ROWS", "ROWS_FIRST", "CAUSAL", "MASKED", "UPRIGHT", "NOW", "REVERSE", "SHARED",
          "PAIRS")
_SIGNS = {"le": "<=", "lt": "<", "ge": ">=", "gt": ">", "eq": "==", "ne": "!="}
_ASKS = {f"((v) {sign} (s))": name for name, sign in _SIGNS.items()} | {
    " || ".join(f"((((kind) >> 1) & 7) == {i} && (v) {sign} (s))"
                for i, sign in enumerate(_SIGNS.values())): "mixed"}
_WORDS = {
    "GT_FLOAT16": "float16", "GT_BFLOAT16": "bfloat16", "MPI_FLOAT": "f32", "MPI_DOUBLE": "f64",
    "MPI_INT32_T": "i32", "MPI_INT64_T": "i64", "(e)": "as it is", "((a) < (b))": "rising",
    "((a) > (b))": "falling", "((a) < (b) || ((b) != (b) && (a) == (a)))": "rising floats",
    "((a) > (b) || ((a) != (a) && (b) == (b)))": "falling floats", "((a) + (b))": "sum",
    "((a) < (b) ? (a) : (b))": "min", "((a) > (b) ? (a) : (b))": "max",
    **{f"({ask})": name for ask, name in _ASKS.items()},
    **{f"({ask} || (((kind) & 1) && (v) != (v)))": f"{name} or missing"
       for ask, name in _ASKS.items()}}
_TYPES = {"float": "f32", "double": "f64", "bool": "bool"} | {
    f"{'u' * (kind == 'u')}int{bits}_t": f"{kind}{bits}"
    for kind in "iu" for bits in (8, 16, 32, 64)}


def to_2(document: Document) -> Document:
    """Version 2 names in its head the release that it needs. The choice of a kernel is a record,
    and the macros of templates have values of a type, where version 1 had C text."""
    kernels = [{**k, "body": [_template(s) if s["do"] == "template" else s for s in k["body"]]}
               for k in document["kernels"]]
    return {**plans.in_steps(document), "kernels": kernels}


def _template(row: dict[str, Any]) -> dict[str, Any]:
    new = {k: v for k, v in row.items() if k != "header"}
    macros = [_macro(m) for m in row["macros"] if m["name"] != "GT_EPILOGUE"]
    pointers = [{"name": _name(p["macro"]), "buffer": p["buffer"], "offset": p["offset"]}
                for p in row["pointers"]]
    kernel = row["header"].removesuffix(".h")
    return {**new, "kernel": names.KERNELS.get(kernel, kernel), "macros": macros,
            "pointers": pointers}


def _name(macro: str) -> str:
    """GT_A(b) as A."""
    return macro.removeprefix("GT_").partition("(")[0]


def _macro(row: dict[str, Any]) -> dict[str, Any]:
    name, text = _name(row["name"]), row.get("text")
    if text is None:
        return {"name": name, "size": row["dim"]}
    if name in _FLAGS:
        return {"name": name, "flag": text == "1"}
    if name in ("KEY", "TYPE", "T"):
        return {"name": name, "type": _TYPES[text]}
    if number := re.fullmatch(r"\((.*)f\)", text):
        return {"name": name, "number": float(number[1])}
    if load := re.fullmatch(r"gt_(?:wrap_)?([a-z0-9]+?)(?:_to_f32)?\(e\)", text):
        return {"name": name, "word": load[1]}
    if text in _WORDS:
        return {"name": name, "word": _WORDS[text]}
    return {"name": name, "size": 2 ** 63 - 1 if text == "INT64_MAX" else int(text)}


def to_3(document: Document) -> Document:
    """Version 3 calls plans by the op that stands for their kernel, the kernel conv conv_direct."""
    kernels = [{**k, "body": [{**s, "kernel": names.KERNELS_3.get(s["kernel"], s["kernel"])}
                              if s["do"] == "template" else s for s in k["body"]]}
               for k in document["kernels"]]
    return {**plans.of_steps(document, names.of_times_3, dict), "kernels": kernels}


UPGRADES: tuple[Upgrade, ...] = (to_2, to_3)
