"""What is tried on a relay, one module for each kind; `verify.catalogue` lists all of it."""
