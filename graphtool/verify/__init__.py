"""Whether two things compute the same: tolerances, sides of a comparison, checks of imports."""
