"""Where the shared records live: three backends behind the `Store` port of `fdagent/ports.py`."""
