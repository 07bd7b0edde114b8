"""Structured families of matrices that are products of Monarch matrices."""
