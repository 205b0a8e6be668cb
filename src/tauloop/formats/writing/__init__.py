"""Parts of a machine as text of machine files and side files."""
