"""A module for each peer: `write`, where it has one, makes its form of the data; `batches` gives batches for ever.

Batches are dictionaries of arrays: of rows `row` (n, 48), u8; of steps `obs` (n, 3, 64, 64), u8, and `acts` (n), i64,
the step's number. Each module imports its own package alone, and the standard library and NumPy.
"""
