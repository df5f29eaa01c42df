"""`python -m fdagent`: the same as the `fdagent` command."""

from fdagent.cli.main import fdagent

if __name__ == "__main__":
    fdagent()
