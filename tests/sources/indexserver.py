"""A package index on 127.0.0.1 for tests: PEP 503 and PEP 691 pages, with whatever faults."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Index:
    """What the server has, and what it was asked for."""

    address: str = ""
    pages: dict[str, tuple[int, str, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    failing: dict[str, int] = field(default_factory=dict)
    files: list[dict[str, object]] = field(default_factory=list)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    credentials: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"{self.address}/simple"

    def add(
        self,
        filename: str,
        content: bytes,
        *,
        sha256: str | None = "right",
        yanked: bool | str = False,
    ) -> None:
        """Offer an archive; ``sha256`` can be wrong, or None for an index that states none."""
        self.pages[f"/files/{filename}"] = (200, "application/octet-stream", content)
        stated = hashlib.sha256(content).hexdigest() if sha256 == "right" else sha256
        hashes = {} if stated is None else {"sha256": stated}
        self.files.append(
            {"filename": filename, "url": f"../../files/{filename}", "hashes": hashes}
            | ({"yanked": yanked} if yanked else {})
        )
        page = {"meta": {"api-version": "1.0"}, "name": "vllm", "files": self.files}
        kind = "application/vnd.pypi.simple.v1+json"
        self.pages["/simple/vllm/"] = (200, kind, json.dumps(page).encode())

    def page(self, content: bytes, kind: str = "text/html") -> None:
        """Serve ``content`` as the page of the project."""
        self.pages["/simple/vllm/"] = (200, kind, content)

    def as_html(self, base: str = "") -> None:
        """Serve the page as PEP 503 has it instead."""
        links = []
        for file in self.files:
            hashes = file["hashes"]
            assert isinstance(hashes, dict)
            fragment = f"#sha256={hashes['sha256']}" if hashes else ""
            yanked = f' data-yanked="{file["yanked"]}"' if "yanked" in file else ""
            links.append(f'<a href="{file["url"]}{fragment}"{yanked}>{file["filename"]}</a>')
        self.page(f"<!DOCTYPE html><html>{base}<body>{''.join(links)}</body></html>".encode())


@contextmanager
def running_index() -> Iterator[Index]:
    index = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            if "Authorization" in self.headers:
                index.credentials[self.path] = self.headers["Authorization"]
            if index.failing.get(self.path, 0) > 0:
                index.failing[self.path] -= 1
                self.send_error(503)
                return
            status, kind, content = index.pages.get(self.path, (404, "text/plain", b"no"))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if status in (301, 302):
                self.send_header("Location", content.decode())
                content = b""
            for name, value in index.headers.get(self.path, {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
