"""Numbers and differences read off graphs, and timings: what the verbs report. Prints nothing."""
