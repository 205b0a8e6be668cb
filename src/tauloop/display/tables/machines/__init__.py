"""Tables of machines and files: descriptions, checks, costs, comparisons, caches."""
