"""Tree → typed IR: names, shapes, types and bounds of one kernel, specialised for the types of a call.

kernel       the way in: signature, domain, body, verified IR
signature    annotations → parameters, shapes, a specialisation
names        a Python object → what it means in a kernel
body         the state of one compilation and of one function body
values       what a name holds while it is checked, and how two values join
statements   loops   expressions   calls   builtins   reductions   arrays   arithmetic
"""
