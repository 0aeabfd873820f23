"""Tree → Program."""
