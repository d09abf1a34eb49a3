// An extension of pi, which has no MCP of its own. It attaches the tool servers that are named in bridge.json beside it and offers their tools to the model
// as mcp__server__tool, it decides which tools are offered at all, and it holds the limit of turns.
//
//   {"servers": {"name": {"url": "...", "headers": {}} or {"command": "...", "args": [], "env": {}}},
//    "allow": ["read", ...] (all if missing), "deny": ["bash", ...], "maxTurns": 10 (no limit if missing)}
//
// A server that cannot be reached is an error, which ends the program before the model is asked: a participant without its tools is worse than none.
// Requests have no timer. A call may block for hours, because it waits for other participants.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";

const PROTOCOL = "2025-06-18";
const CONNECT_MS = 30_000;

type Message = { jsonrpc: "2.0"; id?: number; method?: string; params?: any; result?: any; error?: { code: number; message: string } };
type Transport = { send(message: Message, signal?: AbortSignal): Promise<Message | undefined>; close(): void };
type ServerConfig = { url?: string; headers?: Record<string, string>; command?: string; args?: string[]; env?: Record<string, string> };

// overHTTP speaks the streamable HTTP transport: every message is a POST, answered by one JSON object or by a stream of events that holds it.
function overHTTP(config: ServerConfig): Transport {
  const url = new URL(config.url!);
  const client = url.protocol === "https:" ? https : http;
  let session: string | undefined;

  function open(method: string, body: string | undefined, signal?: AbortSignal): Promise<http.IncomingMessage> {
    const headers: Record<string, string> = { ...config.headers, accept: "application/json, text/event-stream" };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (session) Object.assign(headers, { "mcp-session-id": session, "mcp-protocol-version": PROTOCOL });
    return new Promise((resolve, reject) => {
      const request = client.request(url, { method, headers, signal, timeout: 0 }, resolve);
      request.on("error", reject);
      request.end(body);
    });
  }

  return {
    async send(message, signal) {
      const response = await open("POST", JSON.stringify(message), signal);
      session = (response.headers["mcp-session-id"] as string | undefined) ?? session;
      const status = response.statusCode ?? 0;
      if (status >= 400) throw new Error(`HTTP ${status}: ${(await text(response)).trim().slice(0, 200)}`);
      if (message.id === undefined) return void response.resume();
      if (!(response.headers["content-type"] ?? "").includes("text/event-stream")) return JSON.parse(await text(response));
      for await (const data of events(response)) {
        const received: Message = JSON.parse(data);
        if (received.id === message.id && !received.method) {
          response.destroy();
          return received;
        }
      }
      throw new Error("the server ended its answer too early");
    },
    close() {
      if (session) open("DELETE", undefined).then((r) => r.resume(), () => undefined);
    },
  };
}

async function text(response: http.IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let all = "";
  for await (const piece of response) all += piece;
  return all;
}

// events yields the data of server-sent events.
async function* events(response: http.IncomingMessage): AsyncGenerator<string> {
  response.setEncoding("utf8");
  let rest = "";
  let data: string[] = [];
  for await (const piece of response) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line === "" && data.length > 0) {
        yield data.join("\n");
        data = [];
      }
    }
  }
}

// overPipes speaks the stdio transport: the server is a child, and every line is a message.
function overPipes(config: ServerConfig): Transport {
  const child = spawn(config.command!, config.args ?? [], { env: { ...process.env, ...config.env }, stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map<number, { resolve: (m: Message) => void; reject: (e: Error) => void }>();
  const fail = (error: Error) => {
    for (const call of waiting.values()) call.reject(error);
    waiting.clear();
  };
  child.on("error", fail);
  child.on("exit", (code, signal) => fail(new Error(`the server ended (${signal ?? `exit code ${code}`})`)));
  child.stdin.on("error", fail);
  let rest = "";
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (piece: string) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop()!;
    for (const line of lines) take(line);
  });
  function take(line: string) {
    let message: Message;
    try {
      message = JSON.parse(line);
    } catch {
      return; // not a message
    }
    if (message.method && message.id !== undefined) {
      child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "not supported" } }) + "\n");
    } else if (message.id !== undefined) {
      waiting.get(message.id)?.resolve(message);
      waiting.delete(message.id);
    }
  }
  return {
    send(message, signal) {
      return new Promise((resolve, reject) => {
        if (child.exitCode !== null || child.signalCode !== null) return reject(new Error("the server has ended"));
        if (message.id !== undefined) waiting.set(message.id, { resolve, reject });
        signal?.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
        child.stdin.write(JSON.stringify(message) + "\n");
        if (message.id === undefined) resolve(undefined);
      });
    },
    close() {
      child.stdin.end();
      child.kill();
    },
  };
}

class Server {
  private next = 1;
  private transport: Transport;

  constructor(readonly name: string, config: ServerConfig) {
    this.transport = config.url ? overHTTP(config) : overPipes(config);
  }

  async request(method: string, params: any, signal?: AbortSignal): Promise<any> {
    const id = this.next++;
    const cancel = () => void this.transport.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } }).catch(() => undefined);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const answer = await this.transport.send({ jsonrpc: "2.0", id, method, params }, signal);
      if (answer?.error) throw new Error(answer.error.message);
      return answer?.result ?? {};
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  // connect greets the server and returns its tools.
  async connect(): Promise<any[]> {
    const patience = AbortSignal.timeout(CONNECT_MS);
    const clientInfo = { name: "fit", version: "1" };
    await this.request("initialize", { protocolVersion: PROTOCOL, capabilities: {}, clientInfo }, patience);
    await this.transport.send({ jsonrpc: "2.0", method: "notifications/initialized" }, patience);
    const tools: any[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.request("tools/list", cursor ? { cursor } : {}, patience);
      tools.push(...(page.tools ?? []));
      cursor = page.nextCursor;
    } while (cursor);
    return tools;
  }

  // call runs a tool. The progress token invites the server to show that it is alive while a call blocks.
  async call(tool: string, callID: string, params: any, signal?: AbortSignal) {
    const meta = { progressToken: callID, "pi/toolCallId": callID };
    const result = await this.request("tools/call", { name: tool, arguments: params ?? {}, _meta: meta }, signal);
    const content = (result.content ?? []).map(block);
    if (content.length === 0 && result.structuredContent !== undefined) content.push({ type: "text", text: JSON.stringify(result.structuredContent) });
    if (result.isError) throw new Error(content.map((c: any) => c.text ?? `[${c.type}]`).join("\n") || "the tool failed");
    return { content, details: result.structuredContent ?? {} };
  }

  close() {
    this.transport.close();
  }
}

// block turns a piece of an MCP result into one that pi knows.
function block(content: any) {
  if (content.type === "text") return { type: "text", text: content.text ?? "" };
  if (content.type === "image") return { type: "image", data: content.data, mimeType: content.mimeType };
  return { type: "text", text: content.resource?.text ?? JSON.stringify(content) };
}

const identifier = (name: string) => name.replace(/[^A-Za-z0-9_-]/g, "_");

// holdAfter keeps the model from being asked once more when a prompt has had its turns. Whoever drives the program sees the same events, says so and aborts; but
// by then the next turn may have been in flight, tools and all. A failed attempt is not a turn: asking again after the same tool result is the same turn.
function holdAfter(pi: any, maxTurns: number) {
  const answered = new Set<string>();
  pi.on("before_agent_start", async () => answered.clear());
  pi.on("context", async (event: any, ctx: any) => {
    const last = event.messages[event.messages.length - 1];
    if (last?.role !== "toolResult") return;
    answered.add(`${last.timestamp} ${last.toolCallId}`);
    if (answered.size < maxTurns || !ctx.signal) return;
    await new Promise<void>((resolve) => {
      if (ctx.signal.aborted) resolve();
      else ctx.signal.addEventListener("abort", () => resolve(), { once: true });
    });
  });
}

export default async function (pi: any) {
  const config = JSON.parse(readFileSync(new URL("./bridge.json", import.meta.url), "utf8"));
  const servers: Server[] = [];
  const bridged = new Set<string>();
  for (const [name, settings] of Object.entries<ServerConfig>(config.servers ?? {})) {
    const server = new Server(name, settings);
    servers.push(server);
    let tools: any[];
    try {
      tools = await server.connect();
    } catch (error: any) {
      throw new Error(`MCP server ${name} is not connected: ${error.message}; check that it runs and that its token is right`);
    }
    for (const tool of tools) {
      const offered = `mcp__${identifier(name)}__${identifier(tool.name)}`;
      bridged.add(offered);
      pi.registerTool({
        name: offered,
        label: `${name}: ${tool.name}`,
        description: tool.description ?? tool.name,
        parameters: tool.inputSchema ?? { type: "object", properties: {} },
        execute: (callID: string, params: any, signal?: AbortSignal) => server.call(tool.name, callID, params, signal),
      });
    }
  }
  if (config.maxTurns) holdAfter(pi, config.maxTurns);
  pi.on("session_start", async () => {
    // Tools of attached servers are there because their server was attached; a list of allowed tools restricts the others.
    const active: string[] = config.allow ? [...config.allow, ...bridged] : [...pi.getActiveTools(), ...bridged];
    const denied = new Set<string>(config.deny ?? []);
    pi.setActiveTools([...new Set(active)].filter((name) => !denied.has(name)));
  });
  pi.on("session_shutdown", async () => {
    for (const server of servers) server.close();
  });
}
