"""Facts computed from a graph without changing it: costs, peak memory, value ranges."""
