"""The machine as engines see it: a tree of rigid links, and constraints that close its loops."""
