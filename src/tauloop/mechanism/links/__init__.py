"""A mechanism as a graph of links, and as a tree of rigid links with loop closures."""
