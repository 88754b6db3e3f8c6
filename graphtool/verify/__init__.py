"""Whether two things compute the same: tolerances, the sides of a comparison, and checks of
imports."""
