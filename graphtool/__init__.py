"""graphtool: a command-line compiler for machine-learning graphs."""
