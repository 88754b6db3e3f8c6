"""Measures which plan of a site is fastest; kernels/ says what plans there are."""
