"""`python -m cli`: the command line; bin/relayhub starts it from any folder."""

from cli.app import app

if __name__ == "__main__":
    app(prog_name="relayhub")
