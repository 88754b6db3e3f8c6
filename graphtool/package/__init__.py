"""Packages of a build for other ecosystems: one module for each form, and the table of forms."""
