"""Between a loader and the loaders of frameworks; users import `gristmill.torch` and `gristmill.jax`."""
