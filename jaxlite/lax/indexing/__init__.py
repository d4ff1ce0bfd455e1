"""Indexing primitives: elements taken from and put at computed places."""
