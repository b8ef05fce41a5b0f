"""Figures, page templates, colours and the words of pages: what is released, made visible."""
