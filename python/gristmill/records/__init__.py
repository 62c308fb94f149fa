"""What records and tensors are in Python: layouts, arrays over the engine's memory, pictures of them."""
