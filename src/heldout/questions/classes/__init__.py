"""Questions about rows of more than two classes."""
