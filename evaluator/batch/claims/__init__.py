"""Claimed speedups of a folder of kernels, compared with measured ones."""
