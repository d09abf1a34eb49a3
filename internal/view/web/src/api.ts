// One function reads everything: from the server, or from the block of JSON in an exported file.
import { useEffect, useState } from "preact/hooks";

export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint = "",
  ) {
    super(message);
  }
}

interface Frozen {
  start?: string;
  generatedMs?: number;
  command?: string;
  leftOut?: number;
  cells?: number;
  /** The entries of the traces that did not fit: pairs of the first one and that after the last one. */
  kept?: Record<string, [number, number][]>;
  responses: Record<string, unknown>;
}

const block = document.getElementById("fit-data");

/** What an exported file holds; null when a server is there. */
export const frozen: Frozen | null = block ? (JSON.parse(block.textContent ?? "{}") as Frozen) : null;

/** Whether a bridge serves the pages: they are about its threads then. */
export const onBridge = document.getElementById("app")?.dataset.threads !== undefined;

/** The command that serves the pages. */
export const command = onBridge ? "fit bridge serve" : "fit view";

/** Builds an address whose parameters stand in the order given; empty ones are left out. */
export function url(path: string, params: [string, string | number | undefined][] = []): string {
  const list = params.filter(([, value]) => value !== undefined && value !== "");
  const text = list.map(([name, value]) => `${name}=${encodeURIComponent(value as string)}`).join("&");
  return "/api/" + path + (text ? "?" + text : "");
}

export async function api<T>(address: string, init?: RequestInit): Promise<T> {
  if (frozen) return (await thaw(frozen.responses[address])) as T;
  let response: Response;
  try {
    response = await fetch(address, init);
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new Failure(0, `${command} does not answer`, "start it again, and reload this page");
  }
  if (response.ok) return (await response.json()) as T;
  throw await failure(response);
}

async function failure(response: Response): Promise<Failure> {
  try {
    const { error } = (await response.json()) as { error: { message: string; hint?: string } };
    return new Failure(response.status, error.message, error.hint);
  } catch {
    const hint = response.status === 401 ? `open the address that ${command} printed` : "";
    return new Failure(response.status, `the server answered ${response.status}`, hint);
  }
}

async function thaw(stored: unknown): Promise<unknown> {
  if (stored === undefined) throw new Failure(404, "not in this file", "open the run directory with fit view");
  if (typeof stored !== "string" || !stored.startsWith("gz:")) return stored;
  const packed = Uint8Array.from(atob(stored.slice(3)), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Reports whether an answer is available: an exported file holds only some. */
export function has(address: string): boolean {
  return !frozen || frozen.responses[address] !== undefined;
}

export function post<T>(address: string, body: unknown): Promise<T> {
  return api<T>(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

export interface Loaded<T> {
  data?: T;
  failure?: Failure;
  loading: boolean;
  reload: () => void;
}

/** Reads an address while a component is shown. Old data stays until new data is there. */
export function useApi<T>(address: string | null): Loaded<T> {
  const [state, setState] = useState<{ address: string | null; data?: T; failure?: Failure }>({ address: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (address === null) return;
    const stop = new AbortController();
    api<T>(address, { signal: stop.signal }).then(
      (data) => setState({ address, data }),
      (e: Error) => {
        if (e.name !== "AbortError") setState({ address, failure: asFailure(e) });
      },
    );
    return () => stop.abort();
  }, [address, round]);
  const current = state.address === address;
  return {
    data: current ? state.data : undefined,
    failure: current ? state.failure : undefined,
    loading: address !== null && !current,
    reload: () => setRound((n) => n + 1),
  };
}

export function asFailure(e: unknown): Failure {
  return e instanceof Failure ? e : new Failure(0, (e as Error).message);
}
