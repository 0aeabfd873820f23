"""The standard library: one family is one .mjk source and one .py with its signatures."""
