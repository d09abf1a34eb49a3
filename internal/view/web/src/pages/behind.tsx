// What stood behind a run: the calls that the gateway recorded, and the prompts. Read when opened.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApi, url } from "../api";
import { bytes, duration, money, short, visible } from "../format";
import { Empty, Problem } from "../ui";

interface Call {
  lane: string;
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
  const { data, failure } = useApi<{ calls: Call[] | null }>(open ? url("trace/calls", [["trace", props.trace]]) : null);
  return (
    <section>
      <details onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>
          <h2 class="inline">Model calls</h2>
        </summary>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {data && !data.calls?.length && <Empty title="The gateway recorded no call." />}
        {data?.calls?.length ? (
          <div class="scroll">
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
                </tr>
              </thead>
              <tbody>
                {data.calls.slice(0, 1000).map((c, i) => (
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
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : null}
      </details>
    </section>
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
