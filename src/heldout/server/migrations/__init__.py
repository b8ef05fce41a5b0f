"""How the server's tables came to be, step by step, and back."""
