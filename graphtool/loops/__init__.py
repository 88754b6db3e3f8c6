"""The loop IR: scalar expressions, loop nests, programs. It does not depend on the graph IR."""
