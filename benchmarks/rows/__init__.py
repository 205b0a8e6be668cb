"""The rows of the table of speed: each module measures Tauloop and its peer and gives `Row`s."""
