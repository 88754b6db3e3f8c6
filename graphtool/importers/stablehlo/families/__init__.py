"""Handlers of StableHLO's operations, one file a family."""
