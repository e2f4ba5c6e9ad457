"""How kernels are compiled, linked and cached, and what threads agree by inside them."""
