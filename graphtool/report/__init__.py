"""The reports of the commands: figures of graphs, differences, timings. Nothing is printed here."""
