"""Runs the operations of a parsed program through their handlers, and makes the module."""
