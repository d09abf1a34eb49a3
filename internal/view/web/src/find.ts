// Search and filters: by the server, or in the browser where there is only a file.
import { api, frozen, url } from "./api";
import type { Store } from "./store";
import type { Entry, Found } from "./types";

export interface Criteria {
  q?: string;
  regex?: string;
  tool?: string;
  lane?: string;
  role?: string;
  errors?: string;
}

export const names = ["q", "regex", "tool", "lane", "role", "errors"] as const;

export function isEmpty(c: Criteria): boolean {
  return !c.q && !c.tool && !c.lane && !c.role && !c.errors;
}

export function find(store: Store, c: Criteria, signal: AbortSignal): Promise<Found> {
  if (frozen) return findHere(store, c);
  const params = names.map((name): [string, string | undefined] => [name, name === "regex" && !c.q ? undefined : c[name]]);
  return api<Found>(url("trace/find", [["trace", store.trace], ...params]), { signal });
}

async function findHere(store: Store, c: Criteria): Promise<Found> {
  const indexes: number[] = [];
  const pattern = c.q ? patternOf(c) : null;
  for await (const entry of store.all()) if (meets(entry, c, pattern)) indexes.push(entry.index);
  return { version: 1, count: indexes.length, indexes, capped: false, excerpts: null };
}

function patternOf(c: Criteria): RegExp {
  return new RegExp(c.regex ? (c.q as string) : escape(c.q as string), "i");
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function meets(e: Entry, c: Criteria, pattern: RegExp | null): boolean {
  if (c.lane && e.lane !== c.lane) return false;
  if (c.role && e.role !== c.role) return false;
  if (c.errors && !e.isError) return false;
  if (c.tool && !(e.blocks ?? []).some((b) => b.type === "tool_use" && b.name === c.tool)) return false;
  return !pattern || pattern.test(textOf(e));
}

function textOf(e: Entry): string {
  const parts = (e.blocks ?? []).flatMap((b) => [b.text, b.name, b.input]);
  return [e.data, ...parts].filter(Boolean).join("\n");
}

/** The pattern that marks hits in what is shown; null where nothing is searched or it is no pattern. */
export function marker(c: Criteria): RegExp | null {
  if (!c.q) return null;
  try {
    return new RegExp(c.regex ? c.q : escape(c.q), "gi");
  } catch {
    return null;
  }
}

/** The position of the first number that is at least n in an ascending list. */
export function lowerBound(list: number[], n: number): number {
  let [from, to] = [0, list.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((list[middle] as number) < n) from = middle + 1;
    else to = middle;
  }
  return from;
}
