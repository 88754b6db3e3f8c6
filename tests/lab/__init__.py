"""What looks for faults for longer than a test may: `python -m tests.lab COMMAND`."""
