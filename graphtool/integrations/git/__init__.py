"""Graph files in git: drivers that show and merge them by structure, and their installation."""
