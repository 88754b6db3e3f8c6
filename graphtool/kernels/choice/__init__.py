"""Which kernel computes what, and with which parameters: sites, plans, costs, and the choice."""
