"""`python -m graphtool`, the same as the `graphtool` program."""

from graphtool.cli import main

if __name__ == "__main__":
    main()
