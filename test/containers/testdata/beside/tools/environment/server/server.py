import http.server, json

answers = {
    "initialize": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}},
                   "serverInfo": {"name": "answers", "version": "1"}},
    "tools/list": {"tools": [{"name": "ask", "description": "Ask.", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "forty-two"}]},
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in asked:
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
