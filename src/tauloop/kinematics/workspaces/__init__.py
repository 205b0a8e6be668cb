"""Workspaces: maps over sections and volumes, and their borders."""
