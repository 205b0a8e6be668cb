"""The search for the corrections: robust losses, an initial guess, checks before it, and exchanged columns."""
