"""Commands for a first look: machines and their files."""
