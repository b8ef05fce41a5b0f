"""Exact areas and average precisions, how far one person moves them, and the noise for that."""
