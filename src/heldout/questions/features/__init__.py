"""Selecting features and training models, as questions."""
