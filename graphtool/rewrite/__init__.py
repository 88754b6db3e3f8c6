"""Rewrite rules: the patterns they are written in, the engine that applies them, the rules."""
