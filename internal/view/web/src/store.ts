// The entries of one trace, read page by page and forgotten when others are looked at.
import { useEffect, useMemo } from "preact/hooks";
import { signal } from "@preact/signals";
import { api, asFailure, frozen, url, type Failure } from "./api";
import type { Entry, PageOfEntries, TraceOverview } from "./types";

export const pageSize = 100;
const keptPages = 60;
const indexingPause = 500;

/** The store of a trace while a component is shown. */
export function useStore(trace: string): Store {
  const store = useMemo(() => new Store(trace), [trace]);
  useEffect(() => {
    void store.start();
    return () => store.stop();
  }, [store]);
  return store;
}

export class Store {
  /** Grows with every page that arrives, so that who draws entries draws again. */
  readonly version = signal(0);
  readonly total = signal<number | null>(null);
  readonly failure = signal<Failure | null>(null);
  readonly overview = signal<TraceOverview | null>(null);
  private stopped = false;
  private known: (() => void)[] = [];
  private pages = new Map<number, Entry[]>();
  private wholes = new Map<number, Entry>();
  private asked = new Set<number>();
  /** What readers opened; kept here because entries leave the page when they are scrolled away. */
  readonly opened = new Set<string>();

  /** The entries that a file without a server holds of a trace that did not fit; null where all are there. */
  readonly kept: number[] | null;

  constructor(readonly trace: string) {
    const ranges = frozen?.kept?.[trace];
    this.kept = ranges ? ranges.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i)) : null;
  }

  /** Reads the overview. Of a very long trace that nobody has read before, it comes after the first page. */
  async start(): Promise<void> {
    this.stopped = false;
    while (!this.stopped) {
      try {
        const answer = await api<TraceOverview>(url("trace/overview", [["trace", this.trace]]));
        this.overview.value = answer;
        if (answer.entries !== null) {
          this.total.value = Math.max(this.total.peek() ?? 0, answer.entries);
          for (const go of this.known.splice(0)) go();
          return;
        }
      } catch (e) {
        this.failure.value = asFailure(e);
        return;
      }
      await new Promise((done) => setTimeout(done, indexingPause));
    }
  }

  /** Does something as soon as the number of entries is known. */
  whenKnown(then: () => void): void {
    if (this.overview.peek()?.entries != null) then();
    else this.known.push(then);
  }

  stop(): void {
    this.stopped = true;
  }

  get(index: number): Entry | undefined {
    const whole = this.wholes.get(index);
    if (whole) return whole;
    const number = Math.floor(index / pageSize);
    const page = this.pages.get(number);
    const found = page?.[index - number * pageSize];
    if (!found) this.load(number);
    return found;
  }

  load(number: number): void {
    if (this.asked.has(number)) return;
    this.asked.add(number);
    api<PageOfEntries>(url("trace/page", [["trace", this.trace], ["page", number]])).then(
      (answer) => this.keep(number, answer),
      (e) => {
        this.failure.value = asFailure(e);
      },
    );
  }

  private keep(number: number, answer: PageOfEntries): void {
    const items: Entry[] = [];
    for (const item of answer.items ?? []) items[item.index - number * pageSize] = item;
    this.pages.delete(number);
    this.pages.set(number, items);
    if (items.length) this.total.value = Math.max(this.total.peek() ?? 0, number * pageSize + items.length);
    for (const old of this.pages.keys()) {
      if (this.pages.size <= keptPages) break;
      this.pages.delete(old);
      this.asked.delete(old);
    }
    this.version.value++;
  }

  /** The trace grew: its last pages are read again, and old ones stay on the screen until then. */
  grow(entries: number): void {
    const before = this.total.peek() ?? 0;
    this.total.value = Math.max(before, entries);
    const last = Math.floor(Math.max(before - 1, 0) / pageSize);
    for (const number of [last - 1, last]) {
      if (!this.asked.delete(number) || number < 0) continue;
      this.load(number);
    }
    this.version.value++;
  }

  /** Reads one entry with nothing cut. */
  async whole(index: number): Promise<void> {
    const answer = await api<{ item: Entry }>(url("trace/entry", [["trace", this.trace], ["n", index]]));
    this.wholes.set(index, answer.item);
    this.version.value++;
  }

  /** Every entry in order, for searches in a file without a server. */
  async *all(): AsyncGenerator<Entry> {
    if (this.kept) {
      for (const number of new Set(this.kept.map((index) => Math.floor(index / pageSize)))) {
        const answer = await api<PageOfEntries>(url("trace/page", [["trace", this.trace], ["page", number]]));
        yield* answer.items ?? [];
      }
      return;
    }
    for (let number = 0; ; number++) {
      const answer = await api<PageOfEntries>(url("trace/page", [["trace", this.trace], ["page", number]]));
      yield* answer.items ?? [];
      if ((number + 1) * pageSize >= (this.total.peek() ?? 0)) return;
    }
  }
}
