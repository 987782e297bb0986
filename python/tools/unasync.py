"""Makes cofferdam/_sync of cofferdam/_async. With --check it only says whether they agree."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "cofferdam"

WORDS = [
    (r"async_(blocking|sleep|unless_cancelled)", r"\1"),
    (r"async (def|with|for) ", r"\1 "),
    (r" async for ", " for "),
    (r"\bawait ", ""),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bCoroutine\[Any, Any, (\w+)\]", r"\1"),
    (r", Coroutine\nfrom typing import Any\n", "\n"),
    (r"\bAsyncHTTPTransport\b", "HTTPTransport"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\b(aclose|aread|aiter_lines|aiter_bytes)\b", lambda m: m[0][1:]),
    (r"\bAsync([A-Z]\w*)", r"\1"),
]
TITLE = "# Made by tools/unasync.py of the file of this name in _async: change that one.\n"


def sync(text: str) -> str:
    for pattern, by in WORDS:
        text = re.sub(pattern, by, text)
    return TITLE + text


def main() -> int:
    differ = []
    for source in sorted((ROOT / "_async").glob("*.py")):
        target, wanted = ROOT / "_sync" / source.name, sync(source.read_text())
        if source.name == "__init__.py":
            wanted = '"""Made of package ``_async`` by tools/unasync.py."""\n'
        if target.exists() and target.read_text() == wanted:
            continue
        differ.append(target.name)
        if "--check" not in sys.argv:
            target.parent.mkdir(exist_ok=True)
            target.write_text(wanted)
    if differ and "--check" in sys.argv:
        print(f"cofferdam/_sync is not what tools/unasync.py makes: {', '.join(differ)}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
