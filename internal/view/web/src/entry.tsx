// One entry of a transcript. What agents wrote is only ever put into text nodes.
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { coloured } from "./ansi";
import { frozen, has, url } from "./api";
import { changesIn, EditView } from "./edits";
import { absolute, bytes, count, cutMiddle, duration, short, visible } from "./format";
import { Markdown } from "./markdown";
import { place } from "./router";
import type { Store } from "./store";
import type { Block, CallOutcome, Entry, Picture } from "./types";
import { Copy } from "./ui";

export interface Shown {
  store: Store;
  /** Marks hits of the search; null where nothing is searched. */
  marker: RegExp | null;
  /** True in a filtered list, where a result may stand without its call. */
  alone: boolean;
  startMs: number;
  /** True where the text of models is shown as it was written, and not as Markdown. */
  source: boolean;
}

/** Reports whether an entry is drawn as part of another. */
export function folded(entry: Entry, shown: Shown): boolean {
  return !shown.alone && entry.role === "tool_result" && entry.callIndex !== undefined && entry.callIndex !== null;
}

const roleWords = { system: "system", assistant: "", user: "user", tool_result: "result" };

export function EntryView(props: { entry: Entry; shown: Shown; chosen: boolean }): JSX.Element {
  const { entry, shown } = props;
  const after = entry.timestampMs && shown.startMs ? "+" + duration(Math.max(0, entry.timestampMs - shown.startMs)) : "";
  const kind = "entry " + entry.role + (entry.parent ? " sub" : "") + (props.chosen ? " chosen" : "") + (entry.isError ? " bad" : "");
  return (
    <div class={kind}>
      <div class="who">
        <a href={permalink(shown.store.trace, entry.index)} title="permanent link to this entry">
          {entry.index}
        </a>{" "}
        <span class="strong" title={visible(entry.lane)}>
          {visible(cutMiddle(entry.lane || "agent", 18))}
        </span>{" "}
        {roleWords[entry.role]}
        <div class="meta soft">
          <span title={absolute(entry.timestampMs)}>{after}</span>
          {entry.usage && <span title="tokens in and out">{tokens(entry.usage)}</span>}
        </div>
        <Copy label="copy as Markdown" text={() => markdown(shown.store, entry.index)} />
      </div>
      <div class="said">
        {entry.role === "system" ? <SystemEntry entry={entry} shown={shown} /> : (entry.blocks ?? []).map((b, i) => <BlockView key={i} block={b} at={i} entry={entry} shown={shown} />)}
        {entry.role !== "system" && !entry.blocks?.length && <span class="soft">(nothing)</span>}
      </div>
    </div>
  );
}

function tokens(usage: NonNullable<Entry["usage"]>): string {
  return `${short(usage.inputTokens + usage.cacheReadInputTokens + usage.cacheCreationInputTokens)} in, ${short(usage.outputTokens)} out`;
}

function permalink(trace: string, index: number): string {
  const query = new URLSearchParams(place.value.query);
  query.set("at", String(index));
  return `#/trace/${encodeURIComponent(trace)}?${query}`;
}

/** One entry as Markdown. A fence is longer than any run of backticks inside it. */
async function markdown(store: Store, index: number): Promise<string> {
  let entry = store.get(index);
  if (entry?.dataCut || entry?.blocks?.some((b) => b.cut)) {
    await store.whole(index);
    entry = store.get(index);
  }
  if (!entry) return "";
  const parts = [`**${entry.index} ${visible(entry.lane || "agent")}** ${roleWords[entry.role]}`.trim()];
  if (entry.role === "system") parts.push(visible(entry.subtype ?? ""), fenced(pretty(entry)));
  for (const b of entry.blocks ?? []) {
    if (b.type === "text") parts.push(entry.role === "tool_result" ? fenced(b.text ?? "") : visible(b.text ?? ""));
    else if (b.type === "thinking") parts.push(visible(b.text ?? "").replace(/^/gm, "> "));
    else if (b.type === "tool_use") parts.push(`${visible(b.name ?? "")}:`, fenced(b.input ?? ""), ...(b.result ? [b.result.isError ? "Error:" : "Result:", fenced(b.result.text)] : []));
    else parts.push(`(${b.type})`);
  }
  return parts.join("\n\n") + "\n";
}

function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((m) => m[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${visible(text)}\n${fence}`;
}

function BlockView(props: { block: Block; at: number; entry: Entry; shown: Shown }): JSX.Element {
  const { block, entry, shown } = props;
  const key = `${entry.index}.${props.at}`;
  switch (block.type) {
    case "text":
      return entry.role === "tool_result" ? <Result block={block} entry={entry} shown={shown} /> : <Long text={block.text ?? ""} cut={block.cut} bytes={block.bytes} entry={entry} shown={shown} class="prose" as={shown.source ? undefined : "markdown"} />;
    case "thinking":
      return (
        <Fold id={key} shown={shown} head={<span class="soft">thinking: {visible(cutMiddle(firstLine(block.text ?? ""), 100))}</span>}>
          <Long text={block.text ?? ""} cut={block.cut} bytes={block.bytes} entry={entry} shown={shown} class="prose soft" />
        </Fold>
      );
    case "tool_use":
      return <Call id={key} block={block} entry={entry} shown={shown} />;
    case "image":
      return <Image trace={shown.store.trace} picture={{ n: block.n ?? entry.index, block: block.block ?? props.at }} />;
    default:
      return (
        <Fold id={key} shown={shown} head={<span class="soft">{visible(block.name ?? "other")}</span>}>
          <Long text={block.text ?? ""} cut={block.cut} bytes={block.bytes} entry={entry} shown={shown} />
        </Fold>
      );
  }
}

function firstLine(text: string): string {
  return text.trimStart().split("\n", 1)[0] ?? "";
}

function Result(props: { block: Block; entry: Entry; shown: Shown }): JSX.Element {
  const { block, entry, shown } = props;
  return (
    <div class={"result" + (entry.isError ? " bad" : "")}>
      {entry.callIndex !== undefined && entry.callIndex !== null && <a href={permalink(shown.store.trace, entry.callIndex)}>of call {entry.callIndex}</a>}
      <Long text={block.text ?? ""} cut={block.cut} bytes={block.bytes} entry={entry} shown={shown} as="terminal" />
    </div>
  );
}

/** Something folded; whether it is open is kept while it is scrolled away. */
function Fold(props: { id: string; shown: Shown; head: ComponentChildren; children: ComponentChildren }): JSX.Element {
  const { opened } = props.shown.store;
  const [open, setOpen] = useState(opened.has(props.id));
  return (
    <details
      open={open}
      onToggle={(e) => {
        const now = e.currentTarget.open;
        if (now) opened.add(props.id);
        else opened.delete(props.id);
        setOpen(now);
      }}
    >
      <summary>{props.head}</summary>
      {open && props.children}
    </details>
  );
}

function Call(props: { id: string; block: Block; entry: Entry; shown: Shown }): JSX.Element {
  const { block, entry, shown } = props;
  const result = block.result;
  const title = visible(cutMiddle((block.title ?? "").replace(/\s+/g, " "), 140));
  return (
    <Fold
      id={props.id}
      shown={shown}
      head={
        <span class="call">
          <span class="strong">{visible(cutMiddle(block.name ?? "", 40))}</span> <code><Marked text={title} marker={shown.marker} /></code>
          <CallEnd result={result} />
          {result?.firstError && <span class="first-error fail-text">{visible(cutMiddle(result.firstError, 160))}</span>}
        </span>
      }
    >
      <div class="in-out">
        <div>
          <h2 class="soft">input</h2>
          <Input block={block} entry={entry} shown={shown} />
        </div>
        <div class={result?.isError ? "bad" : ""}>
          <h2 class="soft">{result?.isError ? "error" : "result"}</h2>
          {result ? <ResultOf result={result} shown={shown} /> : <p class="soft">No result follows in the trace.</p>}
        </div>
      </div>
    </Fold>
  );
}

function CallEnd(props: { result?: CallOutcome | null }): JSX.Element {
  const { result } = props;
  if (!result) return <span class="soft end">no result</span>;
  return (
    <span class="end">
      {(result.isError || !!result.exitCode) && <span class="fail-text">✕ {typeof result.exitCode === "number" ? "" : "error"} </span>}
      {typeof result.exitCode === "number" && <span class={result.exitCode ? "fail-text" : "soft"}>exit {result.exitCode} </span>}
      <span class="soft">{typeof result.durationMs === "number" ? duration(result.durationMs) : ""}</span>
    </span>
  );
}

function ResultOf(props: { result: CallOutcome; shown: Shown }): JSX.Element {
  const { result, shown } = props;
  const entry = shown.store.get(result.index);
  return (
    <>
      {(result.text || !result.images?.length) && (
        <Long text={wholeText(entry) ?? result.text} cut={wholeText(entry) === undefined && result.cut} bytes={result.bytes} entry={{ index: result.index }} shown={shown} as="terminal" />
      )}
      {(result.images ?? []).map((p) => (
        <Image key={p.block} trace={shown.store.trace} picture={p} />
      ))}
    </>
  );
}

function wholeText(entry: Entry | undefined): string | undefined {
  const texts = (entry?.blocks ?? []).filter((b) => b.type === "text");
  if (!texts.length || texts.some((b) => b.cut)) return undefined;
  return texts.map((b) => b.text ?? "").join("\n");
}

function Input(props: { block: Block; entry: Entry; shown: Shown }): JSX.Element {
  const { block } = props;
  const [limit, setLimit] = useState(400);
  const value = block.cut ? undefined : parsed(block.input ?? "");
  const change = changesIn(value);
  const fields = members(value)?.filter(([name]) => !change?.fields.includes(name));
  if (!fields) return <Long text={block.input ?? ""} cut={block.cut} bytes={block.bytes} entry={props.entry} shown={props.shown} />;
  return (
    <>
      {fields.map(([name, value]) => (
        <div key={name} class="field">
          <span class="soft">{visible(name)}</span>
          <Long text={value} entry={props.entry} shown={props.shown} />
        </div>
      ))}
      {change && <EditView name={change.name} lines={change.lines} limit={limit} />}
      {change && change.lines.length > limit && (
        <button type="button" class="plain" onClick={() => setLimit((n) => n * 8)}>
          show {count(change.lines.length - limit, "more line")}
        </button>
      )}
    </>
  );
}

function parsed(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}

function members(value: unknown): [string, string][] | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return Object.entries(value).map(([k, v]) => [k, typeof v === "string" ? v : JSON.stringify(v, null, 2)]);
}

function SystemEntry(props: { entry: Entry; shown: Shown }): JSX.Element {
  const { entry, shown } = props;
  return (
    <Fold id={`${entry.index}.s`} shown={shown} head={<span class="soft">{visible(entry.subtype ?? "event")}</span>}>
      <Long text={pretty(entry)} cut={entry.dataCut} bytes={entry.dataBytes} entry={entry} shown={shown} />
    </Fold>
  );
}

function pretty(entry: Entry): string {
  if (entry.dataCut) return entry.data ?? "";
  try {
    return JSON.stringify(JSON.parse(entry.data ?? ""), null, 2);
  } catch {
    return entry.data ?? "";
  }
}

const firstStep = 16 * 1024;

/** Text of any length: the rest is read when asked for, and shown in steps that a browser can lay out. */
function Long(props: { text: string; cut?: boolean; bytes?: number; entry: { index: number }; shown: Shown; class?: string; as?: "markdown" | "terminal" }): JSX.Element {
  const [limit, setLimit] = useState(firstStep);
  const [trouble, setTrouble] = useState("");
  const part = props.text.length > limit ? props.text.slice(0, limit) : props.text;
  async function more(): Promise<void> {
    setLimit((n) => n * 8);
    if (!props.cut) return;
    try {
      await props.shown.store.whole(props.entry.index);
    } catch (e) {
      setTrouble((e as Error).message);
    }
  }
  return (
    <>
      {props.as === "markdown" ? (
        <Markdown text={part} show={(text) => <Marked text={visible(text)} marker={props.shown.marker} />} />
      ) : (
        <pre class={props.class}>
          {(props.as === "terminal" ? coloured(part) : [{ text: part, name: "" }]).map((p, i) => (
            <span key={i} class={p.name || undefined}>
              <Marked text={visible(p.text)} marker={props.shown.marker} />
            </span>
          ))}
        </pre>
      )}
      {(props.cut || part.length < props.text.length) && (
        <button type="button" class="plain" onClick={more}>
          show more of {bytes(props.bytes ?? props.text.length)}
        </button>
      )}
      {trouble && <span class="soft">{visible(trouble)}</span>}
    </>
  );
}

function Marked(props: { text: string; marker: RegExp | null }): JSX.Element {
  const { text, marker } = props;
  if (!marker || text.length > 1_000_000) return <>{text}</>;
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const found of text.matchAll(marker)) {
    if (!found[0] || parts.length > 2000) break;
    parts.push(text.slice(from, found.index), <mark key={found.index}>{found[0]}</mark>);
    from = found.index + found[0].length;
  }
  return <>{[...parts, text.slice(from)]}</>;
}

function Image(props: { trace: string; picture: Picture }): JSX.Element {
  const { n, block } = props.picture;
  const address = url("trace/image", [["trace", props.trace], ["n", n], ["block", block]]);
  if (!has(address)) return <p class="soft">An image; fit view shows it.</p>;
  return <img class="picture" loading="lazy" alt={`image in entry ${n}`} src={frozen ? String(frozen.responses[address]) : address} />;
}
