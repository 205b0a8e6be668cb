"""Commands that write code and pages, and run plants."""
