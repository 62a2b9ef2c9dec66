# An app on http.server that leaves the bodies of requests where they are. It answers with the paths that it was asked for so far.
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        seen.append(self.path)
        text = " ".join(seen).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
