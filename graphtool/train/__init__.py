"""Training with compiled steps: the build of a training graph, and the loop around it."""
