"""What feeds: the loader, its batches, its order, ranks, states and numbers."""
