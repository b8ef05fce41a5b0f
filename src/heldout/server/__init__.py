"""The verification server: custodians register rows, analysts pay for answers about models.

The web process has no right to the rows; workers do. Everything private happens in `worker`.
"""
