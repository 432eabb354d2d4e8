"""Speedups that somebody claims for a folder of kernels, held against what is measured here."""
