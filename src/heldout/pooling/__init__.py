"""The same question, answered separately by several custodians, read as one. Public numbers."""
