"""Questions that a few noisy counts or sums answer."""
