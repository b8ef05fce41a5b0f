"""Questions about how a model ranks the rows."""
