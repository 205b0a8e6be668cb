"""Kroneis, Müller and Liu: identification of the SpiderMill's reduced model."""
