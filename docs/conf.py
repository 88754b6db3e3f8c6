"""How Sphinx builds the site: `sphinx-build -W docs OUT`. Needs no network."""

project = "graphtool"
author = "The graphtool contributors"
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
suppress_warnings = ["misc.highlighting_failure"]  # grammars in prose are no strict EBNF
html_theme = "alabaster"
html_theme_options = {
    "description": "A compiler for machine-learning graphs", "page_width": "1100px",
    "sidebar_width": "230px", "show_powered_by": False}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_show_sourcelink = False
html_copy_source = False
