"""Commands to begin with: machines and their files."""
