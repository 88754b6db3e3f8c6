"""The C back end: programs to C text. Knows the loop IR, and no graph."""
