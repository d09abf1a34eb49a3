// The URL is the state: pages read path and query from here, and change them here only. Everything
// stands behind the hash, so that the same bundle works in a file without a server.
import { signal, type Signal } from "@preact/signals";

export interface Place {
  path: string;
  query: URLSearchParams;
}

function read(): Place {
  const text = location.hash.slice(1) || "/";
  const cut = text.indexOf("?");
  if (cut < 0) return { path: text, query: new URLSearchParams() };
  return { path: text.slice(0, cut), query: new URLSearchParams(text.slice(cut + 1)) };
}

export const place: Signal<Place> = signal(read());

export function followAddress(start: string | undefined): void {
  if (start && !location.hash) history.replaceState(null, "", start);
  place.value = read();
  addEventListener("hashchange", arrive);
}

/** How each page was left: links that lead back to it have its filters. */
const left = new Map<string, string>();

function arrive(): void {
  const { path: before, query } = place.value;
  left.set(before, query.toString());
  place.value = read();
  if (place.value.path === before) return;
  scrollTo(0, 0);
  document.getElementById("content")?.focus({ preventScroll: true });
}

/** The address of a place in this application; every part of a path is encoded. */
export function href(parts: (string | number)[], query: Record<string, string | undefined> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value);
  const text = search.toString();
  return "#/" + parts.map((p) => encodeURIComponent(p)).join("/") + (text ? "?" + text : "");
}

/** The address of a place as it was when it was left. */
export function hrefBack(parts: (string | number)[]): string {
  const to = href(parts);
  const query = left.get(to.slice(1));
  return to + (query ? "?" + query : "");
}

export function go(to: string): void {
  location.hash = to;
}

/** Changes parts of the query and keeps the rest; an empty value removes its name. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, "", "#" + place.value.path + (text ? "?" + text : ""));
  place.value = read();
}

/** The parts of the path, decoded. */
export function parts(path: string): string[] {
  return path.split("/").filter(Boolean).map(decode);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
