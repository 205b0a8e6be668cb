"""Commands on a machine's equations and parameters."""
