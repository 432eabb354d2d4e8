"""A client of the server of verdicts, with the standard library alone."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


class RefusedError(Exception):
    def __init__(self, status: int, text: str, retry_after_s: int | None) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.retry_after_s = retry_after_s
        """Where the server has no room now, when it may have."""


class LostError(Exception):
    """The server went away before it had answered everything. What has no answer can be sent
    again."""


@dataclass(frozen=True)
class Answer:
    index: int
    evaluation: dict[str, Any] | None
    """JSON of an `Evaluation`."""
    error: str | None
    """A failure of the server's side: the candidate may be sent again."""
    refused: str | None = None
    """Why the client's own problem can't be judged."""
    diagnosis: str = ""
    """What went wrong, in words."""
    profile: dict[str, Any] | None = None


class RewardClient:
    """Safe for several threads; each request has a connection of its own."""

    def __init__(self, address: str, token: str, *, timeout_s: float | None = None) -> None:
        """`address` is `http://127.0.0.1:PORT`; `timeout_s` is the longest silence to bear."""
        self._place = urlsplit(address).netloc
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout_s = timeout_s

    def health(self) -> dict[str, Any]:
        connection, response = self._asked("GET", "/health", None)
        with closing(connection):
            found: dict[str, Any] = json.loads(response.read())
            return found

    def evaluate(
        self,
        candidates: Sequence[tuple[str, str]],
        *,
        client: str = "",
        problems: Mapping[str, str] | None = None,
    ) -> Iterator[Answer]:
        """The answers as they come; `candidates` are names of problems with sources, `problems`
        sources of one's own by name.

        Raises `RefusedError` before the first answer, and `LostError`. To close the iterator
        hangs up: what has not begun is dropped.
        """
        wanted = [{"problem": problem, "source": source} for problem, source in candidates]
        asked = {"candidates": wanted, "client": client}
        body = json.dumps(asked | ({"problems": dict(problems)} if problems else {})).encode()
        connection, response = self._asked("POST", "/evaluations", body)
        left = len(candidates)
        with closing(connection):
            try:
                for line in response:
                    answer = {"evaluation": None, "error": None} | json.loads(line)
                    left -= 1
                    yield Answer(**answer)
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise LostError(f"{left} answers are missing: {error!r}") from None
        if left:
            raise LostError(f"{left} answers are missing")

    def _asked(
        self, method: str, path: str, body: bytes | None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self._place, timeout=self._timeout_s)
        try:
            connection.request(method, path, body, self._headers)
            response = connection.getresponse()
            if response.status == 200:
                return connection, response
            text = response.read().decode(errors="replace").strip()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise LostError(f"{self._place} does not answer: {error!r}") from None
        connection.close()
        after = response.headers.get("Retry-After")
        raise RefusedError(response.status, text, None if after is None else int(after))
