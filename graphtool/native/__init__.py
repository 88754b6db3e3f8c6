"""From emitted C to running code: the C compiler, its cache, loading."""
