"""Residual plots, error measures and checks of a logistic regression, as questions."""
