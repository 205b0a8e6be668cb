"""Configurations of printer firmware for deltas and cable robots; no other format imports it."""
