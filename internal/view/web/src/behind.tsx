// What stood behind a run: the calls that the gateway recorded, and the prompts. Read when opened.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApi, url } from "./api";
import { bytes, cutMiddle, duration, money, short, visible } from "./format";
import type { Exchange, ToolTime } from "./types";
import { Copy, Empty, Problem, Reading, Scroll } from "./ui";

interface Call {
  lane: string;
  startMs: number;
  firstByteMs?: number;
  turn?: number;
  model?: string;
  status: number;
  outcome: string;
  endMs: number;
  usage?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number } | null;
  costUsd?: number | null;
  error?: string;
}

export function Calls(props: { trace: string }): JSX.Element {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const { data, failure } = useApi<{ calls: Call[] | null; tools?: ToolTime[] }>(open ? url("trace/calls", [["trace", props.trace]]) : null);
  return (
    <section>
      <details onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>
          <h2 class="inline">Model calls</h2>
        </summary>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {data && !data.calls?.length && <Empty title="The gateway recorded no call." />}
        {data?.calls?.length ? <Waterfall calls={data.calls} tools={data.tools ?? []} /> : null}
        {data?.calls?.length ? (
          <Scroll>
            <table>
              <thead>
                <tr>
                  {["participant", "model"].map((h) => (
                    <th key={h} scope="col">
                      {h}
                    </th>
                  ))}
                  {["turn", "input", "cache read", "output", "cost", "time", "status"].map((h) => (
                    <th key={h} scope="col" class="num">
                      {h}
                    </th>
                  ))}
                  <th scope="col">error</th>
                  <th scope="col">bodies</th>
                </tr>
              </thead>
              <tbody>
                {data.calls.slice(0, 1000).flatMap((c, i) => [
                  <tr key={i}>
                    <td>{visible(c.lane)}</td>
                    <td>{visible(c.model ?? "")}</td>
                    <td class="num">{c.turn ?? ""}</td>
                    <td class="num">{tokens(c, "input")}</td>
                    <td class="num">{tokens(c, "cacheRead")}</td>
                    <td class="num">{tokens(c, "output")}</td>
                    <td class="num">{money(c.costUsd)}</td>
                    <td class="num">{duration(c.endMs)}</td>
                    <td class="num">{c.status || ""}</td>
                    <td>{visible(c.error || (c.outcome === "ok" ? "" : c.outcome))}</td>
                    <td>
                      <button type="button" class="plain" aria-expanded={chosen === i} onClick={() => setChosen(chosen === i ? -1 : i)}>
                        {chosen === i ? "hide" : "show"}
                      </button>
                    </td>
                  </tr>,
                  chosen === i && (
                    <tr key="bodies">
                      <td colSpan={11}>
                        <Bodies trace={props.trace} n={i} />
                      </td>
                    </tr>
                  ),
                ])}
              </tbody>
            </table>
          </Scroll>
        ) : null}
      </details>
    </section>
  );
}

/** What was sent in one call, and what came back. */
function Bodies(props: { trace: string; n: number }): JSX.Element {
  const { data, failure } = useApi<Exchange>(url("trace/call", [["trace", props.trace], ["n", props.n]]));
  if (failure) return <Problem message={failure.message}>{failure.hint}</Problem>;
  if (!data) return <Reading />;
  return (
    <div class="in-out bodies">
      {data.missing && <p class="soft">{visible(data.missing)}</p>}
      {([["request", data.request], ["reply", data.response]] as const).map(
        ([name, body]) =>
          body.text && (
            <div key={name}>
              <p class="soft">
                {name} <span>{bytes(body.bytes)}</span> <Copy text={body.text} label="copy" />
              </p>
              <pre tabIndex={0}>{visible(pretty(body.text))}</pre>
              {body.cut && <p class="soft">Only the beginning is shown; fit trace call shows the whole.</p>}
            </div>
          ),
      )}
    </div>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

interface Bar {
  name: string;
  kind: "call" | "tool";
  from: number;
  first: number;
  to: number;
  failed: boolean;
}

const mostBars = 300;
const barWidth = 480;

/** When the model worked and when the tools did: one line each, on one scale. */
function Waterfall(props: { calls: Call[]; tools: ToolTime[] }): JSX.Element {
  const bars: Bar[] = [
    ...props.calls.slice(0, 1000).map((c): Bar => ({ name: `model, turn ${c.turn || "–"}`, kind: "call", from: c.startMs, first: c.startMs + (c.firstByteMs ?? 0), to: c.startMs + c.endMs, failed: c.outcome !== "ok" && c.outcome !== "replayed" })),
    ...props.tools.map((t): Bar => ({ name: t.name, kind: "tool", from: t.startMs, first: t.startMs, to: t.endMs, failed: t.isError })),
  ].sort((a, b) => a.from - b.from);
  const start = Math.min(...bars.map((b) => b.from));
  const whole = Math.max(1, Math.max(...bars.map((b) => b.to)) - start);
  const x = (ms: number): number => ((ms - start) / whole) * barWidth;
  return (
    <figure class="waterfall">
      <Scroll label="When the model and the tools worked">
        <table>
          <tbody>
            {bars.slice(0, mostBars).map((b, i) => (
              <tr key={i}>
                <td>{visible(cutMiddle(b.name, 28))}</td>
                <td class="num">{duration(b.from - start)}</td>
                <td class="num">{duration(b.to - b.from)}</td>
                <td>
                  <svg width={barWidth + 4} height="14" role="img" aria-label={visible(`${b.name}: from ${duration(b.from - start)}, for ${duration(b.to - b.from)}${b.failed ? ", failed" : ""}`)}>
                    <rect class={"bar-" + b.kind + (b.failed ? " failed" : "")} x={x(b.from)} y="3" width={Math.max(2, x(b.to) - x(b.from))} height="8" />
                    {b.first > b.from && b.first < b.to && <rect class="waits" x={x(b.from)} y="5" width={x(b.first) - x(b.from)} height="4" />}
                  </svg>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <figcaption class="soft">
        {[`${duration(whole)} from the first call to the end`, "the light part of a call is the wait for its first byte", bars.length > mostBars ? `the first ${mostBars} of ${bars.length}` : ""].filter(Boolean).join("; ")}
      </figcaption>
    </figure>
  );
}

/** The tokens of a kind. A service that says something about tokens leaves out those it did not use. */
function tokens(c: Call, kind: "input" | "output" | "cacheRead"): string {
  return short(c.usage ? (c.usage[kind] ?? 0) : null);
}

interface PromptsAnswer {
  lanes: { lane: string; prompts: { source: string; label: string; turnIndex: number; content: string }[] | null }[] | null;
}

/** What every call brought beside the conversation. Read when opened: it takes the whole trace. */
export function Prompts(props: { trace: string; aside: string }): JSX.Element {
  const [open, setOpen] = useState(false);
  const { data, failure } = useApi<PromptsAnswer>(open ? url("trace/prompts", [["trace", props.trace]]) : null);
  const lanes = (data?.lanes ?? []).filter((l) => l.prompts?.length);
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        System prompt <span class="soft">{props.aside}</span>
      </summary>
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
      {data && !lanes.length && <p class="soft">The trace holds none; run with --record bodies to keep what is sent to the model.</p>}
      {lanes.flatMap((l) =>
        (l.prompts ?? []).map((p, i) => (
          <div key={l.lane + i} class="printed">
            <p class="strong">
              {visible(`${l.lane} · ${p.label || p.source}`)} <span class="soft">
                {bytes(p.content.length)}
                {p.turnIndex > 0 ? `, from turn ${p.turnIndex}` : ""}
              </span>
            </p>
            <pre tabIndex={0}>{visible(p.content)}</pre>
          </div>
        )),
      )}
    </details>
  );
}
