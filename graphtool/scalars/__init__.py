"""The scalar functions that both IRs share, and the special functions among them."""
