"""Functions of a model for CasADi, JAX and PyTorch."""
