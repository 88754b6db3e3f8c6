"""The page of errors: what each code means and what to do."""

from __future__ import annotations

from docs.generators.markdown import prose, table, whole
from graphtool import errors
from graphtool.explain import CODES


def page() -> str:
    """The exit codes, the error tree, and all codes in order."""
    exits = [("0", "fine"), ("1", "an honest negative answer: differs, does not match"),
             ("2", "the command line or an argument is wrong"), ("3", "bad input"),
             ("4", "the model needs something unsupported; the message lists all of it"),
             ("5", "the C compiler failed"),
             ("70", "internal error; a directory for a report is written"), ("130", "interrupted")]
    tree = (errors.__doc__ or "").partition("\n\n")[2].rstrip()
    codes = [(code, entry.title, prose(entry.text)) for code, entry in sorted(CODES.items())]
    return whole("Errors", (
        "An error prints its code, what was expected and what came, where, and what to do. "
        "`graphtool explain CODE` prints the text below."),
        "## Exit codes\n", table(("code", "meaning"), exits),
        "## The tree of exceptions\n", f"```text\n{tree}\n```\n",
        "## Codes\n", table(("code", "means", "what to do"), codes))
