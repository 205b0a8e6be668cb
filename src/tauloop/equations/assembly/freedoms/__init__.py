"""Freedoms of an assembled machine: independent, driven, passive, locked and of cut joints."""
