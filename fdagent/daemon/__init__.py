"""The daemon: one process a machine, made of bounded duties; it never loads a table library."""
