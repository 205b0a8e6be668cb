"""Integrations step by step, in machine code or in Python."""
