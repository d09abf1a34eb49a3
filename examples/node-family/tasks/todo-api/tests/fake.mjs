import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";

// report runs the program against a service of our own that gives one fixed answer.
export async function report(status, body) {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push({ url: request.url, authorization: request.headers.authorization });
    response.statusCode = status;
    response.end(JSON.stringify(body));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const child = spawn(process.execPath, ["src/report.js"], {
    env: { PATH: process.env.PATH, TODO_URL: `http://127.0.0.1:${server.address().port}`, SERVICE_TOKEN: "another-token" },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const [code] = await once(child, "close");
  server.close();
  return { stdout, stderr, code, seen };
}
