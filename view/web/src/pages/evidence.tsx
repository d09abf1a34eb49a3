// The evidence of a cell: graded rows, what graders printed, integrity, milestones, votes.
import type { JSX } from "preact";
import { bytes, duration, money, visible } from "../format";
import type { CellDetail } from "../types";
import { Empty, Link, Mark, Name } from "../ui";

export function Evidence(props: { detail: CellDetail }): JSX.Element {
  const { rows, grading, flags, cell } = props.detail;
  if (!rows?.length && !grading?.length && !flags?.length) {
    const waits = cell.state === "running" || cell.state === "waiting";
    return <Empty title={waits ? "The cell is graded when its agent has ended." : "No check has reported a result."} />;
  }
  return (
    <>
      {rows?.length ? (
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
              <td class={f.severity === "high" ? "fail-text" : ""}>{visible(f.severity)}</td>
              <td>{visible(f.kind)}</td>
              <td>{visible(f.evidence)}</td>
              <td class="soft">{f.file ? visible(`${f.file}:${f.line}`) : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
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

/** Milestones on one line; the room before each grows with the time it took. */
export function Milestones(props: { list: NonNullable<CellDetail["milestones"]>; trace?: string; entryOf: (turn: number) => number | undefined }): JSX.Element {
  const list = [...props.list].sort((a, b) => a.elapsedMs - b.elapsedMs);
  const whole = Math.max(1, list.at(-1)?.elapsedMs ?? 1);
  return (
    <ol class="timeline">
      {list.map((m, i) => {
        const took = m.elapsedMs - (list[i - 1]?.elapsedMs ?? 0);
        return (
          <li key={m.kind + i} style={{ flexGrow: String(took / whole) }} title={visible(`turn ${m.turnIndex}, after ${duration(m.elapsedMs)}`)}>
            <span class="stop" />
            <span>
              {props.trace && props.entryOf(m.turnIndex) !== undefined ? (
                <Link to={["trace", props.trace]} query={{ at: String(props.entryOf(m.turnIndex)) }}>
                  {visible(milestoneWord(m.kind))}
                </Link>
              ) : (
                visible(milestoneWord(m.kind))
              )}
            </span>
            <span class="soft">{duration(m.elapsedMs)}</span>
          </li>
        );
      })}
    </ol>
  );
}

export function Votes(props: { judge: NonNullable<CellDetail["judge"]> }): JSX.Element {
  return (
    <>
      <p>{visible(props.judge.summary)}</p>
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
    </>
  );
}
