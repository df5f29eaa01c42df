"""An agent's own queue: one SQLite file in its home, whose rows move only by the job chart."""
