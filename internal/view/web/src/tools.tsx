// The line above a transcript: search, filters, jumps.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { Criteria } from "./find";
import { lowerBound } from "./find";
import { count as counted, visible, whole } from "./format";
import { useKeys } from "./keys";
import { place, setQuery } from "./router";
import type { Store } from "./store";
import type { Hits } from "./transcript";

interface ToolsProps {
  store: Store;
  criteria: Criteria;
  hits: Hits;
  filtered: Hits | null;
  at: number;
  onHit: (by: number) => void;
  onError: () => void;
}

export function Tools(props: ToolsProps): JSX.Element {
  const { criteria: c, hits } = props;
  const search = useRef<HTMLInputElement>(null);
  const { overview, indexing } = props.store.overview.value ?? {};
  const lanes = overview?.lanes ?? [];
  useKeys([{ keys: "/", does: "search", run: () => search.current?.select() }], []);
  const onKeyDown = (e: KeyboardEvent): void => {
    if (e.key !== "Enter") return;
    e.preventDefault();
    props.onHit(e.shiftKey ? -1 : 1);
  };
  return (
    <div class="tools no-print">
      <input
        ref={search}
        type="search"
        placeholder="Search the transcript  (/)"
        aria-label="Search the transcript"
        value={c.q ?? ""}
        onInput={(e) => setQuery({ q: e.currentTarget.value })}
        onKeyDown={onKeyDown}
      />
      <label class="check" title="regular expression in RE2 syntax">
        <input type="checkbox" checked={c.regex === "1"} onChange={(e) => setQuery({ regex: e.currentTarget.checked ? "1" : "" })} /> pattern
      </label>
      <HitCount hits={hits} at={props.at} wanted={Boolean(c.q)} onHit={props.onHit} />
      <Choice name="tool" all="any tool" value={c.tool} options={(overview?.tools ?? []).map((t) => t.tool)} />
      {lanes.length > 1 && <Choice name="lane" all="any participant" value={c.lane} options={lanes.map((l) => l.lane)} />}
      <Choice name="role" all="any entry" value={c.role} options={["assistant", "user", "tool_result", "system"]} />
      <label class="check">
        <input type="checkbox" checked={c.errors === "1"} onChange={(e) => setQuery({ errors: e.currentTarget.checked ? "1" : "" })} /> errors only
      </label>
      <label class="check" title="text as it was written, and not as Markdown">
        <input type="checkbox" checked={place.value.query.get("source") === "1"} onChange={(e) => setQuery({ source: e.currentTarget.checked ? "1" : "" })} /> source
      </label>
      <button type="button" onClick={props.onError} title="e">
        next error
      </button>
      <span class="soft push" role="status">
        {props.filtered ? shownCount(props.filtered, props.store.total.value) : indexing ? "reading the whole trace…" : props.store.total.value === null ? "" : counted(props.store.total.value, "entry", "entries")}
      </span>
    </div>
  );
}

function shownCount(filtered: Hits, total: number | null): string {
  if (filtered.failure) return filtered.failure.message;
  if (!filtered.found) return "filtering…";
  const { count, capped, indexes } = filtered.found;
  return `${whole(count)} of ${whole(total)} entries` + (capped ? `, the first ${whole(indexes?.length)} shown` : "");
}

function HitCount(props: { hits: Hits; at: number; wanted: boolean; onHit: (by: number) => void }): JSX.Element | null {
  const { found, failure } = props.hits;
  if (!props.wanted) return null;
  const indexes = found?.indexes ?? [];
  const position = lowerBound(indexes, props.at);
  const text = failure ? failure.message : !found ? "searching…" : indexes[position] === props.at ? `${whole(position + 1)} of ${whole(found.count)} hits` : found.count === 1 ? "1 hit" : `${whole(found.count)} hits`;
  return (
    <span class="hits">
      <span role="status">{visible(text)}</span>
      <button type="button" disabled={!indexes.length} onClick={() => props.onHit(-1)} aria-label="previous hit" title="N">
        ↑
      </button>
      <button type="button" disabled={!indexes.length} onClick={() => props.onHit(1)} aria-label="next hit" title="n">
        ↓
      </button>
    </span>
  );
}

function Choice(props: { name: "tool" | "lane" | "role"; all: string; value?: string; options: string[] }): JSX.Element {
  return (
    <select aria-label={`Filter by ${props.name}`} value={props.value ?? ""} onChange={(e) => setQuery({ [props.name]: e.currentTarget.value })}>
      <option value="">{props.all}</option>
      {props.options.map((o) => (
        <option key={o} value={o}>
          {visible(o).replace("tool_result", "tool result")}
        </option>
      ))}
    </select>
  );
}
