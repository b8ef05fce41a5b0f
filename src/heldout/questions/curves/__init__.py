"""Curves read off a noisy score table: free arithmetic."""
