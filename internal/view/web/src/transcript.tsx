// The transcript: a virtual list of entries with search, filters and jumps.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { asFailure, type Failure } from "./api";
import { EntryView, folded, type Shown } from "./entry";
import { find, isEmpty, lowerBound, marker, names, type Criteria } from "./find";
import { count, whole } from "./format";
import { useKeys } from "./keys";
import { LaneStrip } from "./lanes";
import { useEvents } from "./live";
import { place, setQuery } from "./router";
import { useList } from "./rows";
import { useStore, type Store } from "./store";
import { Tools } from "./tools";
import type { Entry, Found, TraceOverview } from "./types";
import { Empty, Problem } from "./ui";

// A browser cannot lay out an element of any height, so that a longer trace is shown in parts.
const partSize = 50_000;

export interface Hits {
  found: Found | null;
  failure: Failure | null;
  busy: boolean;
}

/** Asks for the entries that meet criteria, and forgets answers that come too late. */
function useFound(store: Store, c: Criteria, wanted: boolean): Hits {
  const [state, setState] = useState<Hits>({ found: null, failure: null, busy: false });
  const key = JSON.stringify(c);
  useEffect(() => {
    if (!wanted) return setState({ found: null, failure: null, busy: false });
    const stop = new AbortController();
    setState((old) => ({ ...old, busy: true }));
    const timer = setTimeout(() => {
      find(store, c, stop.signal).then(
        (found) => !stop.signal.aborted && setState({ found, failure: null, busy: false }),
        (e) => !stop.signal.aborted && setState({ found: null, failure: asFailure(e), busy: false }),
      );
    }, 120);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, wanted, store]);
  return state;
}

function criteria(): Criteria {
  const query = place.value.query;
  return Object.fromEntries(names.map((n) => [n, query.get(n) ?? undefined]));
}

/** A transcript with a store of its own. */
export function OwnTranscript(props: { trace: string }): JSX.Element {
  return <Transcript store={useStore(props.trace)} compact />;
}

export function Transcript(props: { store: Store; compact?: boolean }): JSX.Element {
  const { store } = props;
  const { trace } = store;
  const c = criteria();
  const filter = { ...c, q: undefined, regex: undefined };
  const filtered = useFound(store, filter, !isEmpty(filter));
  const hits = useFound(store, c, Boolean(c.q));
  const [errors, setErrors] = useState<number[] | null>(null);
  const [fresh, setFresh] = useState(0);
  useEvents(store.overview.value?.live ? { trace } : null, {
    trace: (e: { trace: string; entries: number; live: boolean }) => {
      if (!e.live) void store.start();
      const more = e.entries - (store.total.peek() ?? 0);
      if (!(more > 0) || store.total.peek() === null) return;
      setFresh((n) => n + more);
      setErrors(null);
      store.grow(e.entries);
    },
  });
  const view = isEmpty(filter) ? store.kept : (filtered.found?.indexes ?? []);
  const list = useEntries(store, view, !isEmpty(filter), hits.found?.indexes ?? null, c);
  const nextError = async (): Promise<void> => {
    const all = errors ?? (await find(store, { errors: "1" }, new AbortController().signal)).indexes ?? [];
    setErrors(all);
    const next = all[lowerBound(all, list.chosen + 1)] ?? all[0];
    if (next !== undefined) list.jump(next);
  };
  const step = (by: number): void => list.step(by);
  useKeys(
    [
      { keys: "j", does: "next entry", run: () => step(1) },
      { keys: "k", does: "previous entry", run: () => step(-1) },
      { keys: "n", does: "next hit", run: () => list.hit(1) },
      { keys: "N", does: "previous hit", run: () => list.hit(-1) },
      { keys: "e", does: "next error", run: () => void nextError() },
      { keys: "g g", does: "first entry", run: () => list.end(false) },
      { keys: "G", does: "last entry", run: () => list.end(true) },
      { keys: "c", does: "copy the entry as Markdown", run: () => document.querySelector<HTMLElement>(".entry.chosen .who button")?.click() },
      { keys: "Enter", does: "open or fold what is in the entry", run: list.toggle },
    ],
    [list, errors],
  );
  const toEnd = (): void => {
    setFresh(0);
    list.end(true);
  };
  return (
    <div class={"transcript" + (props.compact ? " compact" : "")}>
      <Tools store={store} criteria={c} hits={hits} filtered={isEmpty(filter) ? null : filtered} at={list.chosen} onHit={list.hit} onError={() => void nextError()} />
      {store.kept && (
        <p class="soft gap">
          This file holds {whole(store.kept.length)} of {whole(store.total.value)} entries: the first, the last, those around errors. --max-bytes allows more; fit view shows all.
        </p>
      )}
      <div class="panes" style={props.compact ? { height: `min(72vh, ${Math.max(list.size + 8, 160)}px)` } : undefined}>
        <LaneStrip store={store} at={list.top} hits={hits.found?.indexes ?? []} onJump={list.jump} />
        <div class="scroller" ref={list.scroller} role="feed" aria-label="Transcript" aria-busy={filtered.busy} tabIndex={0}>
          {list.items}
        </div>
      </div>
      {fresh > 0 && (
        <button type="button" class="pill" onClick={toEnd}>
          {whole(fresh)} new
        </button>
      )}
    </div>
  );
}

interface EntryList {
  scroller: { current: HTMLDivElement | null };
  items: JSX.Element;
  chosen: number;
  size: number;
  top: number;
  jump: (index: number) => void;
  step: (by: number) => void;
  hit: (by: number) => void;
  end: (last: boolean) => void;
  toggle: () => void;
}

function useEntries(store: Store, view: number[] | null, alone: boolean, hits: number[] | null, c: Criteria): EntryList {
  const scroller = useRef<HTMLDivElement>(null);
  const wanted = place.value.query.get("at");
  const [chosen, setChosen] = useState(wanted === null ? -1 : Number(wanted));
  const [base, setBase] = useState(wanted === null ? 0 : partOf(Number(wanted)));
  const target = useRef<number | null>(wanted === null ? null : Number(wanted));
  const total = store.total.value;
  store.version.value; // draws again when entries arrive
  useEffect(() => void (view ?? store.load(Math.floor(base / 100) + (target.current ? Math.floor((target.current - base) / 100) : 0))), [store]);

  const count = view ? view.length : Math.max(0, Math.min(partSize, (total ?? 0) - base));
  const indexAt = (n: number): number => (view ? (view[n] as number) : base + n);
  const startMs = store.get(0)?.timestampMs ?? 0;
  const shown: Shown = { store, marker: marker(c), alone, startMs, source: place.value.query.get("source") === "1" };
  const rows = useList(scroller, {
    count,
    estimate: () => 56,
    key: indexAt,
  });
  const positionOf = (index: number): number => (view ? Math.min(lowerBound(view, index), view.length - 1) : index - base);

  // Before the overview is there, the number of entries is only what was read of them.
  const jump = (index: number, replace = true): void => {
    if (index < (store.total.peek() ?? 0)) reach(index, replace);
    else store.whenKnown(() => reach(index, replace));
  };
  const reach = (index: number, replace: boolean): void => {
    const within = Math.min(Math.max(index, 0), (store.total.peek() ?? 1) - 1);
    const to = store.kept ? (store.kept[Math.min(lowerBound(store.kept, within), store.kept.length - 1)] as number) : within;
    setChosen(to);
    if (replace) setQuery({ at: String(to) });
    target.current = to;
    if (!view && (to < base || to >= base + partSize)) setBase(partOf(to));
    else settle();
  };
  // A jump is complete when the entry is in this part, was read, and was drawn.
  const settle = (): void => {
    if (target.current === null || count === 0) return;
    const at = positionOf(target.current);
    if (at < 0 || at >= count) return;
    const align = at === count - 1 ? "end" : "center";
    rows.scrollToIndex(at, { align });
    if (!store.get(target.current)) return;
    // Entries have their heights only when they were drawn, so that the last step follows that.
    target.current = null;
    requestAnimationFrame(() => rows.scrollToIndex(at, { align }));
  };
  useEffect(settle, [base, count, store.version.value]);
  useEffect(() => {
    if (wanted !== null && Number(wanted) !== chosen) jump(Number(wanted), false);
  }, [wanted]);

  const visibleRows = rows.getVirtualItems();
  const top = visibleRows.length ? indexAt((visibleRows.find((v) => v.end > (rows.scrollOffset ?? 0)) ?? visibleRows[0])?.index as number) : 0;
  const step = (by: number): void => {
    let at = chosen < 0 ? positionOf(top) - (by > 0 ? 1 : -1) : positionOf(chosen);
    do at += by;
    while (at > 0 && at < count - 1 && isFolded(store, indexAt(at), shown));
    if (at >= 0 && at < count) jump(indexAt(at));
    else if (!view && at < 0 && base > 0) jump(base - 1);
    else if (!view && at >= count) jump(base + at);
  };
  const hit = (by: number): void => {
    if (!hits?.length) return;
    const from = lowerBound(hits, chosen);
    const next = by > 0 ? (hits[from] === chosen ? from + 1 : from) : from - 1;
    jump(hits[(next + hits.length) % hits.length] as number);
  };
  const items = (
    <>
      {store.failure.value && <Problem message={store.failure.value.message}>{store.failure.value.hint}</Problem>}
      {total === 0 && <Nothing overview={store.overview.value} />}
      {alone && count === 0 && total !== null && <Empty title="No entry meets the filters." />}
      {!view && base > 0 && <PartLink text={`earlier entries: ${whole(base)}`} onClick={() => jump(base - 1)} />}
      <div class="sizer" style={{ height: `${rows.getTotalSize()}px` }}>
        {visibleRows.map((row) => {
          const index = indexAt(row.index);
          const entry = store.get(index);
          return (
            <article
              key={row.key}
              data-index={row.index}
              aria-posinset={index + 1}
              aria-setsize={total ?? -1}
              ref={(e) => rows.measureElement(e)}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              {store.kept && !alone && <LeftOut from={row.index ? (view?.[row.index - 1] as number) + 1 : 0} to={index} />}
              {entry ? folded(entry, shown) ? <div class="folded" /> : <EntryView entry={entry} shown={shown} chosen={holds(entry, chosen)} /> : <div class="entry pending">{index}</div>}
            </article>
          );
        })}
      </div>
      {!view && total !== null && base + count < total && <PartLink text={`later entries: ${whole(total - base - count)}`} onClick={() => jump(base + count)} />}
    </>
  );
  return {
    scroller,
    items,
    chosen,
    size: rows.getTotalSize(),
    top,
    jump,
    step,
    hit,
    end: (last) => (last ? store.whenKnown(() => jump(view?.at(-1) ?? (store.total.peek() ?? 1) - 1)) : jump(view?.[0] ?? 0)),
    toggle: () => document.querySelector<HTMLElement>(".entry.chosen summary")?.click(),
  };
}

/** Reports whether an entry is the one with a number, or shows the result with that number. */
function holds(entry: Entry, index: number): boolean {
  return entry.index === index || (entry.blocks ?? []).some((b) => b.result?.index === index);
}

function partOf(index: number): number {
  return Math.max(0, Math.floor(index / (partSize / 2)) - 1) * (partSize / 2);
}

/** Why there is nothing to see: it has not begun, or none of it could be read. */
function Nothing(props: { overview: TraceOverview | null }): JSX.Element {
  const skipped = props.overview?.overview?.problems.skippedLines ?? 0;
  if (skipped > 0) {
    return (
      <Empty title={`This trace has nothing to show: ${count(skipped, "line")} cannot be read.`}>
        <p>It was cut off while it was written, or is no trace. fit-trace validate says what is wrong with each line.</p>
      </Empty>
    );
  }
  return <Empty title="This trace has no entries.">{props.overview?.live ? <p>They appear here as the agent works.</p> : null}</Empty>;
}

function LeftOut(props: { from: number; to: number }): JSX.Element | null {
  if (props.from >= props.to) return null;
  return <p class="gap soft">{whole(props.to - props.from)} entries are not in this file</p>;
}

function isFolded(store: Store, index: number, shown: Shown): boolean {
  const entry = store.get(index);
  return entry !== undefined && folded(entry, shown);
}

function PartLink(props: { text: string; onClick: () => void }): JSX.Element {
  return (
    <button type="button" class="plain part-link" onClick={props.onClick}>
      {props.text}
    </button>
  );
}
