"""Noise for tables of counts on public bins: trees, wavelets, private buckets."""
