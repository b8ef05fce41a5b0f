"""One file a table or figure of the papers; `heldout reproduce --list` names them.

Everything here simulates or reads public data, so pseudo-random numbers with fixed seeds are in
order: a figure comes out the same each time.
"""
