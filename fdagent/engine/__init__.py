"""Runs entities: DuckDB computes, deltalake commits. Never imports the fleet or the queue."""
