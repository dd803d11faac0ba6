"""relayhub: a relay hub for a core that must never be asked twice."""
