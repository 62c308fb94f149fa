"""Servers of HTTP on loopback, on a thread of this process: files of a folder by ranges, and answers by path."""

import contextlib
import ssl
import threading
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from certificates import Certificates

#: A method and a path with its headers -> the status, further headers and the body of the answer.
Answer = Callable[[str, str, dict[str, str]], tuple[int, dict[str, str], bytes]]


@contextlib.contextmanager
def served(answer: Answer, certificates: Certificates | None = None) -> Iterator[str]:
    """A server that answers so, by its URL while it runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _reply(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(length)
            status, headers, body = answer(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_PROPFIND = _reply  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme, host = "http", "127.0.0.1"
    if certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server, certificates.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme, host = "https", "localhost"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{scheme}://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def files_of(folder: Path, *, lists: bool = True) -> Answer:
    """Files of a folder, whole or by a range; listed as WebDAV does, unless they are not."""

    def said_of(file: Path) -> dict[str, str]:
        stat = file.stat()
        return {
            "Last-Modified": formatdate(stat.st_mtime, usegmt=True),
            "ETag": f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"',
        }

    def listed(file: Path) -> str:
        said, size = said_of(file), file.stat().st_size
        return f"""<D:response><D:href>/{file.relative_to(folder)}</D:href><D:propstat><D:prop>
            <D:getlastmodified>{said["Last-Modified"]}</D:getlastmodified><D:getetag>{said["ETag"]}</D:getetag>
            <D:getcontentlength>{size}</D:getcontentlength><D:resourcetype/>
            </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"""

    def answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        file = folder / path.strip("/")
        if ".." in path or not file.exists():
            return 404, {}, b""
        if method == "PROPFIND" and lists:
            files = sorted(one for one in (file.rglob("*") if file.is_dir() else [file]) if one.is_file())
            text = f'<D:multistatus xmlns:D="DAV:">{"".join(map(listed, files))}</D:multistatus>'
            return 207, {"Content-Type": "application/xml"}, text.encode()
        if method not in ("GET", "HEAD"):
            return 405, {}, b""
        if not file.is_file():
            return 404, {}, b""
        body, more = file.read_bytes(), {**said_of(file), "Accept-Ranges": "bytes"}
        if method == "HEAD":
            return 200, {**more, "Content-Length": str(len(body))}, b""
        if "range" not in headers:
            return 200, more, body
        first, _, last = headers["range"].removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(body) - 1), len(body) - 1)
        if start > end:
            return 416, {}, b""
        return 206, {**more, "Content-Range": f"bytes {start}-{end}/{len(body)}"}, body[start : end + 1]

    return answer
