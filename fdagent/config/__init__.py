"""agent.toml: what an agent may be told, read and checked whole."""
