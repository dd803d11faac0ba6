"""One use case per module: plain functions over the ledger, the core and the clock."""
