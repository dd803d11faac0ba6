"""What the Makefile and the tests need beside the hub itself."""
