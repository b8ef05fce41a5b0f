"""The ledger: what was spent on whom, durable before any noise is drawn."""
