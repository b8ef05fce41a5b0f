"""Leaderboards: their plan, their state, and a certificate against overfitting."""
