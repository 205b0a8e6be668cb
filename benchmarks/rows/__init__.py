"""The rows of the table of speed: each module measures Tauloop beside its peer and gives `Row`s."""
