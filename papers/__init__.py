"""The papers, run again: their variants and tables on the hardware at hand, published figures beside measured ones."""
