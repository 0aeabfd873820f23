"""What each op means, in NumPy alone: slow, plain, and sharing nothing with the kernels.

In: NumPy arrays and the op's arguments. Out: NumPy arrays. Arguments are not checked.
"""
