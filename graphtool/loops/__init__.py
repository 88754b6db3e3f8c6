"""The loop IR: scalar expressions, loop nests, programs. Knows nothing of the graph IR."""
