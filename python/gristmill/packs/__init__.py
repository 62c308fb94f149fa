"""Data in files: opened, selected, taken by number."""
