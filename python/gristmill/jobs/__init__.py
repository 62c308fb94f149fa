"""Finite work: packing, merging, converting, generating, checking."""
