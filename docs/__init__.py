"""The documentation: pages in Markdown, and the generators of its reference pages."""
