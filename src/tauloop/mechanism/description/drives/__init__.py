"""Drive lines in files: their grammar and reader."""
