"""What is read off a graph without changing it: costs, peak memory, value ranges."""
