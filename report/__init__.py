"""The analysis page of a stream: one HTML file that a browser shows without a network."""
