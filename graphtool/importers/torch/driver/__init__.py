"""Captures a torch model and runs its calls through the handlers. Knows no operator itself."""
