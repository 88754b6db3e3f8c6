"""The verbs of the command line as functions; each one names the module that does the work.

They are used as `graphtool.NAME`, which imports only the file that NAME stands in.
"""

from __future__ import annotations

import graphtool.api.display  # noqa: F401  (how notebooks show what the functions return)
