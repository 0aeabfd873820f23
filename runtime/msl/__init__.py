"""Metal Shading Language as text: tokens, declarations, rules, and the way to C++."""
