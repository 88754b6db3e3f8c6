"""Which alternative is fastest is measured here, a site at a time; choice/ says what there is."""
