"""StableHLO text as data: tokens, types, attributes, operations, functions. Knows no graph."""
