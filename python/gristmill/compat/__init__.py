"""Other loaders' interfaces over this one, so that existing programs run with another import."""
