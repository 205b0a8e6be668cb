"""Commands that write code, run plants and make pages."""
