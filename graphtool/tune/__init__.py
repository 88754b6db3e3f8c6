"""Measures which plan of a site is fastest; kernels/ defines the plans."""
