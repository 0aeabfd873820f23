"""Times of the ops and of calling, as ratios to the best that NumPy, numexpr, numba and PyTorch do on the same work."""
