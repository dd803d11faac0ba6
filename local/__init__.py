"""The stack on one machine: the real template on an emulator, a core with faults, and a demo."""
