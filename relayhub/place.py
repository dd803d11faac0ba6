"""Where the core is: its URL, checked and taken apart.

Job: refuse a URL that cannot be a core's before anything uses it.
May import: the standard library only.
Protects: no user, password, query or fragment of a URL ends up in a request or a log.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Place:
    """Where the core is."""

    is_tls: bool
    host: str
    port: int
    base_path: str

    @property
    def host_header(self) -> str:
        """Return the Host header's value: no port where it is the scheme's own."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.is_tls else 80) else f"{name}:{self.port}"


def place_of(url: str) -> Place:
    """Return the parts of the core's URL; raises ValueError naming what is wrong with it."""
    parts = urlsplit(url)
    wrong = {
        "is not http or https": parts.scheme not in {"http", "https"},
        "has no host": not parts.hostname,
        "has a user or password (the secret is their place)": "@" in parts.netloc,
        "has a query": "?" in url,
        "has a fragment": "#" in url,
        "has blanks, controls or non-ASCII": any(not "!" <= char <= "~" for char in url),
    }
    for fault, is_so in wrong.items():
        if is_so:
            message = f"the core's URL {fault}"
            raise ValueError(message)
    is_tls = parts.scheme == "https"
    try:
        port = parts.port
        str(parts.hostname).encode("idna")
    except ValueError:
        message = "the core's URL has a host or port that is none"
        raise ValueError(message) from None
    if port == 0:
        message = "the core's URL has port 0"
        raise ValueError(message)
    return Place(
        is_tls, str(parts.hostname), port or (443 if is_tls else 80), parts.path.rstrip("/")
    )
