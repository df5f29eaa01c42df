"""Why each kind of record does what it does: one module a concern, each with the records it finds by a name."""
