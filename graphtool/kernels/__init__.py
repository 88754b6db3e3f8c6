"""The C headers that emitted code includes; real files that compile alone."""
