"""How streams are coded, as NumPy arrays: types, vectors, QP and bits of every macroblock, for research and for pages."""
