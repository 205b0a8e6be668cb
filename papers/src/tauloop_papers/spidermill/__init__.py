"""Kroneis, Müller and Liu: the SpiderMill's reduced model is identified."""
