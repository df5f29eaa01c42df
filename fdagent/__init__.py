"""What is done: the queue, the stores, the engine, the agent and its commands."""

__version__ = "0.1.0"
