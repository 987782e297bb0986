# Made by tools/unasync.py of the file of this name in _async: change that one.
"""HTTP to one daemon: errors as types, a daemon of one's own started where none runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from .. import _find
from .._compat import blocking
from ..errors import ConnectionLost, DaemonNotFound, InvalidRequest, NotFound, ProtocolError, from_problem

_MAX_PROBLEM = 64 << 10

# Of the network, not of the answer: making a sandbox, or a plan, may take long.
_TIMEOUT = httpx.Timeout(None, connect=10.0)

Query = Mapping[str, "str | int | list[str] | None"]


class Transport:
    """Speaks to one daemon. One connection a call: a kept one would outlive a killed daemon."""

    def __init__(self, address: _find.Address) -> None:
        self.address = address
        headers = {"User-Agent": "cofferdam-python"}
        if address.token:
            headers["Authorization"] = f"Bearer {address.token}"
        single = httpx.Limits(max_keepalive_connections=0)
        if address.socket:
            way = httpx.HTTPTransport(uds=address.socket, limits=single)
        else:
            context = _find.trust(address)
            way = httpx.HTTPTransport(verify=context, limits=single)
        # The daemon redirects nowhere, and the token is for nobody else: no proxy of the environment.
        self._http = httpx.Client(
            transport=way,
            base_url=address.url or "http://daemon",
            headers=headers,
            timeout=_TIMEOUT,
            follow_redirects=False,
            trust_env=False,
        )

    def close(self) -> None:
        """Ends all connections."""
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        content: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        again: bool | None = None,
    ) -> Any:
        """The decoded answer; None where there is none. ``timeout`` is in seconds, for each part of it.

        ``again`` says that asking twice does no harm, as with every GET: where the daemon goes
        with the request in its hands, the one that takes its place is asked once more.
        """

        def ask() -> Any:
            return self._call(
                method, path, query=query, body=body, content=content, headers=headers, timeout=timeout
            )

        try:
            return ask()
        except ConnectionLost as e:
            # A daemon that takes its time is there, and would take as long again.
            if isinstance(e.__cause__, httpx.TimeoutException) or not (method == "GET" if again is None else again):
                raise
        try:
            return ask()
        except NotFound:
            if method != "DELETE":
                raise
            return None  # the first one may have removed it

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None,
        body: Any,
        content: Any,
        headers: Mapping[str, str] | None,
        timeout: float | None,
    ) -> Any:
        with self.stream(
            method, path, query=query, body=body, content=content, headers=headers, timeout=timeout
        ) as response:
            data = self.read(response)
        if not data:
            return None
        try:
            return json.loads(data)
        except ValueError:
            raise ProtocolError(f"the daemon's answer to {method} {path} is not JSON") from None

    def lines(
        self, path: str, *, method: str = "GET", query: Query | None = None, body: Any = None, start: bool = True
    ) -> Iterator[Any]:
        """The values of an answer of JSON lines, as they come. Without ``start`` no daemon is started for them."""
        with self.stream(method, path, query=query, body=body, start=start) as response:
            try:
                for line in response.iter_lines():
                    if line.strip():
                        yield json.loads(line)
            except ValueError:
                raise ProtocolError("the daemon's answer has a line that can't be read") from None
            except httpx.TransportError as e:
                raise ConnectionLost(f"the connection to the daemon was lost: {e}") from e

    def read(self, response: httpx.Response) -> bytes:
        """The rest of an answer."""
        try:
            return response.read()
        except httpx.TransportError as e:
            raise ConnectionLost(f"the connection to the daemon was lost: {e}") from e

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        content: Any = None,
        headers: Mapping[str, str] | None = None,
        upgrade: bool = False,
        start: bool = True,
        timeout: float | None = None,
    ) -> Iterator[httpx.Response]:
        """The answer of a success, unread; any other is an error with the daemon's sentence."""
        try:
            request = self._http.build_request(
                method,
                path,
                params={k: v for k, v in (query or {}).items() if v not in (None, "", [])},
                json=body,
                content=content,
                headers=headers,
                timeout=httpx.USE_CLIENT_DEFAULT if timeout is None else timeout,
                extensions={"trace": self._trace} if self.address.own else None,
            )
        except UnicodeEncodeError as e:  # of os.fsdecode, say: bytes that are no UTF-8
            around = e.object[max(0, e.start - 20) : e.end]
            raise InvalidRequest(400, f"a text of the request is no UTF-8, at the end of {around!r}") from None
        response = self._send(request, again=start and (content is None or isinstance(content, bytes)))
        try:
            if not response.is_success and not (upgrade and response.status_code == 101):
                raise self._problem(response)
            yield response
        finally:
            response.close()

    def _send(self, request: httpx.Request, again: bool) -> httpx.Response:
        if self.address.own:
            _find.check_owner(Path(self.address.socket).parent)
        try:
            return self._http.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as e:
            if not self.address.own or not again:
                raise DaemonNotFound(f"no daemon is listening at {self.address.where}: {e}") from e
        except httpx.TransportError as e:
            raise ConnectionLost(f"the connection to the daemon was lost: {e}") from e
        # Nothing was sent, so the same request goes out once more.
        blocking(_find.start)
        _find.check_owner(Path(self.address.socket).parent)
        try:
            return self._http.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as e:
            raise DaemonNotFound(f"the daemon at {self.address.where} was started and does not answer: {e}") from e
        except httpx.TransportError as e:  # it has the request, and may have done what that asks for
            raise ConnectionLost(f"the connection to the daemon was lost: {e}") from e

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Looks at each connection, before anything is sent over it, who is at its other end."""
        if event != "connection.connect_unix_socket.complete":
            return
        stream = info["return_value"]
        try:
            _find.check_listener(stream.get_extra_info("socket"), self.address.socket)
        except DaemonNotFound:
            stream.close()
            raise

    def _problem(self, response: httpx.Response) -> Exception:
        data = b""
        try:
            for part in response.iter_bytes():
                data += part
                if len(data) > _MAX_PROBLEM:
                    break
        except httpx.TransportError:
            pass  # a part of it is better than nothing
        try:
            problem = json.loads(data)
        except ValueError:
            problem = None
        return from_problem(response.status_code, problem)
