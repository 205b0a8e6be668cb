"""Machines with cables: phases in which the same cables pull, and what happens between them."""
