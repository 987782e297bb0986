"""Python functions that sandboxes may call: an HTTP server on this process's loopback interface.

The daemon asks it, and nobody else can: each session has a secret of its own. What a guest
sends was judged by the policy's ``tool_allowlist``, matched against the function's schema,
bounded and recorded before it comes here; here the document's rules judge it once more.
"""

from __future__ import annotations

import asyncio
import hmac
import inspect
import json
import logging
import secrets
import threading
import typing
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

logger = logging.getLogger("cofferdam.agt")

MAX_BODY = 128 << 10  # the daemon takes 64 KiB of arguments
MAX_AT_ONCE = 8  # of a session; a call that hangs keeps its place
_KEPT_ERRORS = 100

_JSON_TYPES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}


class ToolError(Exception):
    """A call of a tool that came to nothing; ``tool`` says which."""

    def __init__(self, tool: str, message: str) -> None:
        super().__init__(f"{tool}: {message}")
        self.tool = tool


class ToolRaised(ToolError):
    """The function raised; ``__cause__`` is what. The sandbox is told that it failed, and nothing else."""


class ToolTimedOut(ToolError):
    """The function did not answer in time. Python can't end it: it keeps its place until it returns."""


class ToolBusy(ToolError):
    """Too many of the session's calls are still at work."""


class ToolRefused(ToolError, PermissionError):
    """A rule of the session's policy refuses the call."""


class ToolAnswer(ToolError, TypeError):
    """The function returned what is not JSON."""


def schema_of(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's arguments, which are given by name."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    more = False
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # names that don't resolve here: nothing is known of the types
        hints = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ValueError(
                f"the tool {name} takes {parameter.name} by its position; tools get their arguments by name"
            )
        kind = hints.get(parameter.name)
        kind = _JSON_TYPES.get(typing.get_origin(kind) or kind)
        properties[parameter.name] = {"type": kind} if kind else {}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": more}
    if required:
        schema["required"] = required
    return schema


@dataclass
class Offered:
    """What one session's sandbox may call."""

    secret: str
    functions: Mapping[str, Callable[..., Any]]
    judge: Callable[[str, dict[str, Any]], str | None]  # why not; None: it may
    timeout: float
    seats: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(MAX_AT_ONCE))
    errors: deque[ToolError] = field(default_factory=lambda: deque(maxlen=_KEPT_ERRORS))

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Calls a function in a thread of its own; a ToolError if that comes to nothing."""
        why = self.judge(name, arguments)
        if why is not None:
            raise ToolRefused(name, why)
        if not self.seats.acquire(blocking=False):
            raise ToolBusy(name, f"{MAX_AT_ONCE} calls of this session are still at work")
        box: list[Any] = []
        done = threading.Event()

        def work() -> None:
            try:
                result = self.functions[name](**arguments)
                if inspect.iscoroutine(result):
                    result = asyncio.run(result)
                box.append((True, result))
            except BaseException as e:  # SystemExit as well: it is the function's, not this process's
                box.append((False, e))
            finally:
                self.seats.release()
                done.set()

        threading.Thread(target=work, name=f"cofferdam-tool-{name}", daemon=True).start()
        if not done.wait(self.timeout):
            raise ToolTimedOut(name, f"it did not answer within {self.timeout:g} seconds")
        worked, value = box[0]
        if not worked:
            raise ToolRaised(name, f"it raised {type(value).__name__}: {value}") from value
        return value


class ToolServer:
    """Serves the functions of one provider's sessions; it begins with the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all below
        self._offered: dict[str, Offered] = {}
        self._server: ThreadingHTTPServer | None = None

    def offer(self, session: str, offered: Offered) -> str:
        """Begins to serve a session, and gives the URL that its tools' names go behind."""
        with self._lock:
            self._offered[session] = offered
            if self._server is None:
                self._server = _listen(self._find)
            return f"http://127.0.0.1:{self._server.server_address[1]}/{session}/"

    def withdraw(self, session: str) -> None:
        """Serves a session no more."""
        with self._lock:
            self._offered.pop(session, None)

    def of(self, session: str) -> Offered | None:
        """What a session was offered."""
        with self._lock:
            return self._offered.get(session)

    def close(self) -> None:
        """Serves nobody."""
        with self._lock:
            server, self._server = self._server, None
            self._offered.clear()
        if server is not None:
            server.shutdown()
            server.server_close()

    def _find(self, session: str, authorization: str) -> Offered | None:
        offered = self.of(session)
        # Compared also where there is no such session, so that the time tells nothing of it.
        right = hmac.compare_digest(
            f"Bearer {offered.secret if offered else new_secret()}".encode(), authorization.encode()
        )
        return offered if right else None


def new_secret() -> str:
    """By which the daemon is known."""
    return secrets.token_urlsafe(32)


def _listen(find: Callable[[str, str], Offered | None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            _, session, name = [*self.path.split("/", 2), "", ""][:3]
            offered = find(session, self.headers.get("Authorization") or "")
            length = self.headers.get("Content-Length") or ""
            if offered is None:
                return self._answer(401, "")
            if name not in offered.functions:
                return self._answer(404, "")
            if not length.isdigit() or int(length) > MAX_BODY:
                return self._answer(413, "")
            status, body = _serve(offered, name, self.rfile.read(int(length)))
            return self._answer(status, body)

        def _answer(self, status: int, body: str) -> None:
            data = body.encode()
            self.close_connection = True
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            logger.debug("tools: " + format, *args)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="cofferdam-tools", daemon=True).start()
    return server


_STATUSES: dict[type[ToolError], int] = {ToolRefused: 403, ToolBusy: 503, ToolTimedOut: 504}


def _serve(offered: Offered, name: str, body: bytes) -> tuple[int, str]:
    try:
        arguments = json.loads(body or b"{}")
    except (ValueError, RecursionError):  # the latter: nested deeper than this interpreter reads
        return 400, ""
    if not isinstance(arguments, dict):
        return 400, ""
    try:
        result = offered.call(name, arguments)
        try:
            return 200, json.dumps(result, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as e:
            raise ToolAnswer(name, f"it returned what is not JSON: {e}") from e
    except ToolError as e:
        offered.errors.append(e)
        logger.warning("a tool failed: %s", e)
        return _STATUSES.get(type(e), 500), ""


#: What is put into a session's workspace, by the name that the toolkit's design has.
CLIENT = '''"""Calls functions of the host: call_tool("name", argument=value)."""
import json
import os
import urllib.error
import urllib.request


class ToolError(RuntimeError):
    """A call was refused, or failed; status is the answer's."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def call_tool(tool, /, **args):
    request = urllib.request.Request(
        os.environ["TOOL_PROXY_URL"] + "/call_tool",
        data=json.dumps({"tool": tool, "args": args}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            status, said = answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        status = e.code
        try:
            said = json.load(e)
        except ValueError:
            said = {}
    if "result" in said:
        return said["result"]
    raise ToolError(said.get("error") or "the tool was not called", status)
'''
