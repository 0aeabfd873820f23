"""Text → tree."""
