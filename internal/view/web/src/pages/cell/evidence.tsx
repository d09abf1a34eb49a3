// The evidence of a cell: graded rows, what graders printed, integrity, milestones, votes.
import type { JSX } from "preact";
import { bytes, count, duration, money, percent, visible } from "../../format";
import type { CellDetail, Citation } from "../../types";
import type { PanelVerdict } from "../../types";
import { Empty, Link, Mark, Name, Scroll } from "../../ui";

export function Evidence(props: { detail: CellDetail }): JSX.Element {
  const { rows, grading, flags, cell } = props.detail;
  if (!rows?.length && !grading?.length && !flags?.length) {
    const waits = cell.state === "running" || cell.state === "waiting";
    return <Empty title={waits ? "The cell is graded when its agent has ended." : "No check has reported a result."} />;
  }
  return (
    <>
      {rows?.length ? (
        <Scroll>
          <table class="evidence">
            <tbody>
              {rows.map((r, i) => (
                <tr key={i}>
                  <td class="nowrap">
                    <Mark outcome={r.pass === undefined ? "error" : r.pass ? "pass" : "fail"} label={r.pass === undefined ? "no result" : r.pass ? "passed" : "failed"} />{" "}
                    <span class="soft">{r.gate ? "gate" : "check"}</span>
                  </td>
                  <td>
                    <Name text={r.check} max={80} />
                  </td>
                  <td>{visible(r.message ?? "")}</td>
                  <td class="soft">{visible(r.source)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      ) : null}
      <Flags flags={flags} />
      {grading?.length ? (
        <details>
          <summary>what the graders printed</summary>
          {grading.map((g) => (
            <div key={g.name} class="printed">
              <h3>
                <Name text={g.name} max={80} /> <span class="aside">{bytes(g.bytes)}</span>
              </h3>
              <pre tabIndex={0}>{visible(g.text) || "(nothing)"}</pre>
              {g.cut && <p class="soft">cut after 64 KB</p>}
            </div>
          ))}
        </details>
      ) : null}
    </>
  );
}

function Flags(props: { flags: CellDetail["flags"] }): JSX.Element | null {
  if (!props.flags?.length) return null;
  return (
    <>
      <h3>Integrity</h3>
      <table>
        <tbody>
          {props.flags.map((f, i) => (
            <tr key={i}>
              <td class={f.severity === "medium" ? "" : "fail-text"}>{visible(f.severity)}</td>
              <td>{visible(f.meaning)}</td>
              <td>{visible(f.evidence)}</td>
              <td class="soft">{visible(at(f))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Where a flag points. A negative line was removed. */
function at(f: NonNullable<CellDetail["flags"]>[number]): string {
  if (!f.file) return f.rawLine ? `line ${f.rawLine} of the trace` : "";
  if (!f.line) return f.file;
  return `${f.file}, ${f.line < 0 ? "removed line" : "line"} ${Math.abs(f.line)}`;
}

const words: Record<string, string> = {
  first_read: "read",
  first_edit: "edit",
  first_write: "write",
  first_test: "test",
  first_test_pass: "test passes",
  first_pass: "test passes",
};

export function milestoneWord(kind: string): string {
  return words[kind] ?? kind.replaceAll("_", " ");
}

/** Milestones, each on a line of its own with its place in the time of the run: the lines have one scale. */
export function Milestones(props: { list: NonNullable<CellDetail["milestones"]>; endMs: number; trace?: string; entryOf: (turn: number) => number | undefined }): JSX.Element {
  const list = [...props.list].sort((a, b) => a.elapsedMs - b.elapsedMs);
  const whole = Math.max(1, props.endMs, list.at(-1)?.elapsedMs ?? 1);
  return (
    <table class="timeline">
      <tbody>
        {list.map((m, i) => {
          const entry = props.entryOf(m.turnIndex);
          const word = visible(milestoneWord(m.kind));
          return (
            <tr key={m.kind + i} title={`turn ${m.turnIndex}`}>
              <td>{props.trace && entry !== undefined ? <Link to={["trace", props.trace]} query={{ at: String(entry) }}>{word}</Link> : word}</td>
              <td class="num">{duration(m.elapsedMs)}</td>
              <td>
                <svg class="stop" viewBox="0 0 480 16" role="img" aria-label={`${word} after ${duration(m.elapsedMs)} of ${duration(whole)}`}>
                  <path d="M4 8H476" stroke="var(--line)" />
                  <path d={`M4 8H${4 + (472 * m.elapsedMs) / whole}`} stroke="var(--strong-line)" />
                  <circle cx={4 + (472 * m.elapsedMs) / whole} cy="8" r="4" fill="var(--ink)" />
                </svg>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

export function Votes(props: { judge: NonNullable<CellDetail["judge"]> }): JSX.Element {
  return (
    <>
      <p>{visible(props.judge.summary)}</p>
      <Scroll>
        <table>
          <tbody>
            {(props.judge.votes ?? []).map((v, i) => (
              <tr key={i}>
                <td class="nowrap">
                  <Mark outcome={v.error ? "error" : v.verdict === "pass" ? "pass" : "fail"} label="" /> {visible(v.error ? "error" : v.verdict)}
                </td>
                <td>
                  {visible(v.error || v.summary)}
                  {(v.citations ?? []).map((c, j) => (
                    <div key={j} class="soft mono">
                      {visible(`${c.file}:${Math.abs(c.line)}${c.line < 0 ? " (removed)" : ""}  ${c.text}`)}
                    </div>
                  ))}
                </td>
                <td class="num">{money(v.costUsd)}</td>
                <td class="num">{duration(v.durationMs)}</td>
                <td>{v.trace && <Link to={["trace", v.trace]}>trace</Link>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

/** The lines of the diff that judges of a panel quote. */
export function citedBy(verdicts: PanelVerdict[] | null | undefined): Citation[] {
  return (verdicts ?? []).flatMap((v) => v.votes ?? []).flatMap((v) => v.cited ?? []);
}

/** The verdicts of a panel by dimension, and folded what each of its members said. */
export function PanelVotes(props: { verdicts: PanelVerdict[] }): JSX.Element {
  const votes = props.verdicts.flatMap((v) => (v.votes ?? []).map((vote) => ({ ...vote, dimension: v.dimension })));
  return (
    <>
      <table class="panel">
        <tbody>
          {props.verdicts.map((v) => (
            <tr key={v.dimension}>
              <td>{visible(v.dimension)}</td>
              <td>{visible(v.result ?? "undecided")}</td>
              <td class="soft">
                {v.pass} to {v.fail}
                {v.share === null ? "" : `, ${percent(v.share)} agree`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {votes.length > 0 && (
        <details>
          <summary>{count(votes.length, "vote")}</summary>
          <Scroll>
            <table class="evidence">
              <tbody>
                {votes.map((v, i) => (
                  <tr key={i}>
                    <td>{visible(v.dimension)}</td>
                    <td class="nowrap">{visible(v.member || v.model)}</td>
                    <td class="nowrap">{visible(v.abstained ? "abstains" : (v.result ?? "undecided"))}</td>
                    <td>
                      {visible(v.critique)}
                      {v.reason && <span class="soft"> {visible(v.reason)}</span>}
                      {(v.evidence ?? []).map((text) => (
                        <div key={text} class="soft mono">
                          {visible(text)}
                        </div>
                      ))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </details>
      )}
    </>
  );
}
