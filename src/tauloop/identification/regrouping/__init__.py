"""Base parameters as formulas of the parameters of the machine."""
