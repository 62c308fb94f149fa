"""A module for each peer. `batches` yields batches for ever. `write`, if the module has it, makes the peer's form.

A batch is a dictionary of arrays. A batch of rows has `row` (n, 48), u8. A batch of steps has `obs` (n, 3, 64, 64), u8,
and `acts` (n), i64, the step's number. Each module imports only the package of its peer, the standard library and
NumPy.
"""
