"""The transcript of the incident as a part of a page: every command, and what it printed.

What is left out of a long table is said by a line that begins with `…`; nothing else is changed.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill
from typing import Final

from local.incident_desk import Said

BEGIN: Final = "<!-- incident -->"
END: Final = "<!-- /incident -->"
_LINES_MAX: Final = 12  # Of one table; a longer one is shortened to less, so that it pays.
_LINES_KEPT: Final = 8
_COLUMNS: Final = 100  # Of prose; what was printed keeps its lines.


def written(page: Path, part: str) -> None:
    """Put the part between the page's marks; raises ValueError if they are not there, once each."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in after:
        raise ValueError(f"{page} must have one part between {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{part}\n\n{END}{after}", encoding="utf-8")


def transcript(said: Iterable[Said], intro: str) -> str:
    """Return the part of the page."""
    wrapped = (fill(each, _COLUMNS) for each in intro.split("\n\n"))
    return "\n\n".join([*wrapped, *map(_step, said)])


def _step(said: Said) -> str:
    ended = f"\n(exit code {said.code})" if said.code else ""
    typed = f"$ {said.line}\n{shortened(said.text)}{ended}"
    return f"{fill(said.about, _COLUMNS)}\n\n```text\n{typed}\n```"


def shortened(text: str) -> str:
    """Return the text with the middle of each long table left out, which a line says."""
    return "\n\n".join("\n".join(_shortened(block)) for block in text.split("\n\n"))


def _shortened(block: str) -> Iterator[str]:
    lines = block.splitlines()
    if len(lines) <= _LINES_MAX:
        yield from lines
        return
    yield from lines[:_LINES_KEPT]
    yield f"… {len(lines) - _LINES_KEPT - 1} more lines"
    yield lines[-1]
