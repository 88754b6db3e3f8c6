"""Everything that touches a disk: artifacts, directories, arrays, weights. Writes are atomic."""
