"""How good is this model on the data that I must not show?"""

__version__ = "0.1.0"
