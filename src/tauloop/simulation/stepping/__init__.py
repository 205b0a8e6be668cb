"""Integrations step by step."""
