"""The page of formats: their versions, and what stands in each artifact and report."""

from __future__ import annotations

import inspect
import json
from typing import Any

from docs.generators.markdown import code, prose, table, whole
from graphtool.io import versions
from graphtool.verify.schemas import schemas

ARTIFACTS = ("graph", "program", "build", "tuning")


def page() -> str:
    """Artifacts first, then the reports that `--json` prints."""
    found = {name: json.loads(text) for name, text in schemas().items()}
    reports = [n for n in found if n not in ARTIFACTS]
    return whole("Formats", (
        "Every artifact and every report of `--json` has a JSON Schema, "
        "`schemas/NAME.schema.json`, generated from the code. A table lists the members of the "
        "outermost object."),
        "## Versions\n", _versions(),
        "## Artifacts\n", *(_schema(n, found[n]) for n in ARTIFACTS if n in found),
        "## Reports\n", *(_schema(n, found[n]) for n in reports))


def _versions() -> str:
    """The policy as the code has it, and the release that first wrote each version."""
    policy = inspect.cleandoc(versions.__doc__ or "").partition("\n\n")[2]
    rows = [(code(f.name), code(f.file), str(f.version), f.since) for f in versions.FORMATS]
    return f"{policy}\n\n" + table(("format", "file", "version", "since release"), rows)


def _schema(name: str, schema: dict[str, Any]) -> str:
    defs = schema.get("$defs", {})
    root = _resolved(schema, defs)
    required = root.get("required", ())
    rows = [(code(k), code(_type(v)), "yes" if k in required else "")
            for k, v in root.get("properties", {}).items()]
    said = root.get("description", "")
    return "\n".join(filter(None, (
        f"### {name}\n", f"{prose(said)}\n" if said else "",
        table(("member", "type", "required"), rows) if rows else "")))


def _resolved(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref", "")
    found: dict[str, Any] = defs.get(reference.rpartition("/")[2], schema)
    return found


def _type(schema: dict[str, Any]) -> str:
    """`list of StepRow`, `int or null` and so on."""
    match schema:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"anyOf": list(kinds)}:
            return " or ".join(_type(k) for k in kinds)
        case {"const": value} | {"enum": [value]}:
            return json.dumps(value)
        case {"type": "array", "items": dict(items)}:
            return f"list of {_type(items)}"
        case {"type": "array", "prefixItems": list(items)}:
            return f"list of {len(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_type(values)}"
        case {"type": str(kind)}:
            return kind
        case {"type": list(kinds)}:
            return " or ".join(kinds)
        case _:
            return "any"
