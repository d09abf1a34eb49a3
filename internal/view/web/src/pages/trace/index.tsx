// One trace: its facts on a line, who asked whom, and the transcript.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { frozen, onBridge, useApi, url } from "../../api";
import { Chart, sequence, type Arrow } from "../../charts";
import { bytes, count, cutMiddle, duration, money, visible } from "../../format";
import { Bar, type Crumb } from "../../frame";
import { place, setQuery } from "../../router";
import type { Message, TraceOverview } from "../../types";
import { useStore } from "../../store";
import { Transcript } from "../../transcript";
import type { ExperimentDetail } from "../../types";
import { Link, Page, Scroll, Warnings } from "../../ui";
import { Asked } from "../../asked";
import { Calls } from "../../behind";

export function TracePage(props: { trace: string }): JSX.Element {
  const store = useStore(props.trace);
  const data = store.overview.value;
  const crumbs: Crumb[] = [];
  const experiment = useApi<ExperimentDetail>(data?.experiment ? url(`experiments/${encodeURIComponent(data.experiment)}`) : null).data?.experiment;
  if (data?.experiment) crumbs.push({ text: experiment?.name ?? "experiment", to: ["x", data.experiment] });
  if (data?.cell) crumbs.push({ text: `${data.cell.task} ▸ ${data.cell.arm} ▸ run ${data.cell.run}`, to: ["x", data.experiment, data.cell.task, data.cell.arm, data.cell.run] });
  const thread = onBridge ? data?.overview?.discussionId : "";
  if (thread) crumbs.push({ text: "thread", to: ["thread", thread] });
  const name = data?.name ?? props.trace.split("/").pop() ?? "trace";
  crumbs.push({ text: name });
  return (
    <div class="trace-page">
      <Bar crumbs={crumbs}>{data && <Facts data={data} />}</Bar>
      <Page title={name} wide>
        <h1 class="hidden-text">{visible(name)}</h1>
        {(data?.overview?.lanes?.length ?? 0) > 1 && <Sequence trace={props.trace} lanes={(data?.overview?.lanes ?? []).map((l) => l.lane)} />}
        {data?.overview && (
          <details class="asked-of">
            <summary>
              What the agent was asked <span class="soft">{visible(cutMiddle((data.overview.taskPrompt ?? "").trim().split("\n", 1)[0] ?? "", 120))}</span>
            </summary>
            <Asked trace={props.trace} prompt={data.overview.taskPrompt} given={data.given} />
          </details>
        )}
        <Warnings list={data ? unread(data) : []} />
        <Transcript store={store} />
        {data && (
          <div class="below">
            <Calls trace={props.trace} />
          </div>
        )}
      </Page>
    </div>
  );
}

/** What of a trace could not be read, and whether its end is missing, in the words of fit-trace. */
function unread(data: TraceOverview): string[] {
  const problems = data.overview?.problems;
  const said: string[] = [];
  if (problems?.skippedLines) {
    const first = (problems.first ?? []).slice(0, 3).map((p) => `line ${p.line}: ${p.reason}`).join("; ");
    said.push(`${count(problems.skippedLines, "line")} skipped${first ? ` (${first})` : ""}`);
  }
  if (problems?.noEnd && !data.live) said.push("the session has no summary: it was cut off, and ends here");
  return said;
}

function Facts(props: { data: TraceOverview }): JSX.Element {
  const { overview, bytes: size, live, verdict: graded } = props.data;
  if (!overview) return <span class="soft">{bytes(size)}</span>;
  const facts = [
    graded && graded !== overview.summary?.result ? graded : "",
    overview.summary?.result ?? overview.verdict ?? "",
    overview.metadata?.model ?? "",
    count(overview.turns, "turn"),
    money(overview.summary?.totalCostUsd),
    overview.summary?.durationMs ? duration(overview.summary.durationMs) : "",
    bytes(size),
  ].filter((f) => f && f !== "unknown");
  return (
    <span class="soft">
      {live && !frozen && <span class="running-text">● live · </span>}
      {visible(facts.join(" · "))}
    </span>
  );
}

const firstMessages = 40;

/** Who asked whom: a chart, and the same as a table that a screen reader can read. */
function Sequence(props: { trace: string; lanes: string[] }): JSX.Element | null {
  const { data } = useApi<{ messages: Message[] | null }>(url("trace/messages", [["trace", props.trace]]));
  const [all, setAll] = useState(false);
  const messages = data?.messages ?? [];
  if (!messages.length) return null;
  const open = place.value.query.get("messages") !== "0";
  const shown = all ? messages : messages.slice(0, firstMessages);
  const { arrows, lanes } = arrowsOf(shown, props.lanes);
  return (
    <details class="sequence" open={open} onToggle={(e) => setQuery({ messages: e.currentTarget.open ? "" : "0" })}>
      <summary>{count(messages.length, "message")} between participants</summary>
      <div class="sequence-panes">
        <Scroll label="Who asked whom, as a chart">
          <Chart options={sequence(arrows, lanes)} depends={[JSON.stringify(arrows)]} label={`${count(arrows.length, "message")} between ${lanes.join(", ")}; the list beside has them in words`} />
        </Scroll>
        <ol class="messages">
          {shown.map((m, i) => (
            <li key={i}>
              <Link to={["trace", props.trace]} query={{ at: String(m.index) }}>
                {visible(`${m.from} ${m.kind === "ask" ? "asks" : m.kind} ${(m.to ?? []).join(", ")}`)}
              </Link>{" "}
              <span class="soft">{visible(cutMiddle(m.text.replace(/\s+/g, " "), 100))}</span>
              {isOpen(m) && <span class="fail-text"> not answered</span>}
              {(m.answers ?? []).map((a) => (
                <div key={a.line + a.from}>
                  <Link to={["trace", props.trace]} query={{ at: String(a.index) }}>
                    {visible(`${a.from} answers`)}
                  </Link>{" "}
                  <span class="soft">{visible(cutMiddle(a.text.replace(/\s+/g, " "), 100))}</span>
                </div>
              ))}
            </li>
          ))}
        </ol>
      </div>
      {messages.length > shown.length && (
        <button type="button" onClick={() => setAll(true)}>
          show {count(messages.length - shown.length, "more message")}
        </button>
      )}
    </details>
  );
}

function isOpen(m: Message): boolean {
  return m.kind === "ask" && (m.answers?.length ?? 0) < (m.to?.length ?? 0);
}

function arrowsOf(messages: Message[], known: string[]): { arrows: Arrow[]; lanes: string[] } {
  const lines: { line: number; from: string; to: string; kind: string; open: boolean }[] = [];
  for (const m of messages) {
    for (const to of m.to ?? []) lines.push({ line: m.line, from: m.from, to, kind: m.kind, open: isOpen(m) });
    for (const a of m.answers ?? []) lines.push({ line: a.line, from: a.from, to: m.from, kind: "answer", open: false });
  }
  lines.sort((a, b) => a.line - b.line);
  const named = new Set(lines.flatMap((l) => [l.from, l.to]));
  const lanes = [...known.filter((l) => named.has(l)), ...[...named].filter((l) => !known.includes(l))];
  return { arrows: lines.map((l, at) => ({ at, ...l })), lanes };
}
