"""Demonstrations in files of one's own, or in arrays: which array is which field, and where episodes end."""
