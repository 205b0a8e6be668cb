"""Configurations of printers' firmware: deltas and cable robots in and out; no other format imports it."""
