"""The typed SSA graph: data, ops, tracing, verification, text and files."""
