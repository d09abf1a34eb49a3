// The runs of several agents on one task: milestones on one time axis, columns of evidence and diffs.
import type { JSX } from "preact";
import * as Plot from "@observablehq/plot";
import { useApi, url } from "../../api";
import { Chart } from "../../charts";
import { Diff } from "../../diff";
import { count, cutMiddle, duration, money, visible } from "../../format";
import type { CellDetail } from "../../types";
import { Link, Mark, Name, Problem, type Outcome } from "../../ui";
import type { VersusCell } from "../../types";
import { citedBy, Evidence, milestoneWord, PanelVotes } from "../cell/evidence";
import { toneOf } from "../experiments";

export function MilestonesOfAll(props: { cells: VersusCell[] }): JSX.Element | null {
  const longest = Math.max(...props.cells.map((c) => c.wallClockMs), ...props.cells.flatMap((c) => (c.milestones ?? []).map((m) => m.elapsedMs)));
  const stops = props.cells.flatMap((c) => apart(c, longest / 60));
  if (!stops.length) return null;
  const kinds = [...new Set(stops.map((s) => s.word))];
  const arms = props.cells.map((c) => c.arm);
  const ends = props.cells.map((c) => ({ arm: c.arm, at: Math.max(c.wallClockMs / 1000, ...stops.filter((s) => s.arm === c.arm).map((s) => s.at)) }));
  const missing = props.cells.map((c) => {
    const own = new Set(stops.filter((s) => s.arm === c.arm).map((s) => s.word));
    return { arm: c.arm, words: kinds.filter((k) => !own.has(k)) };
  });
  return (
    <>
      <Chart
        depends={[JSON.stringify(stops)]}
        label={"Milestones on one time axis. " + arms.map((a) => `${a}: ${stops.filter((s) => s.arm === a).map((s) => `${s.word} after ${duration(1000 * s.at)}`).join(", ")}`).join("; ")}
        options={{
          width: 900,
          height: 80 + (28 + 12 * Math.max(1, ...stops.map((s) => s.level + 1))) * arms.length,
          marginTop: 36,
          marginLeft: 120,
          marginRight: 40,
          x: { label: "seconds since the start →", grid: true, domain: [0, 1.08 * Math.max(...ends.map((e) => e.at))] },
          y: { label: null, domain: arms, type: "band", padding: 0.2, tickFormat: (a: string) => cutMiddle(a, 16), tickSize: 0 },
          marks: [
            Plot.ruleY(ends, { y: "arm", x1: 0, x2: "at", stroke: "var(--strong-line)" }),
            Plot.dot(stops, { x: "at", y: "arm", r: 4, fill: "var(--ink)" }),
            ...levels.map((level) =>
              Plot.text(stops.filter((s) => s.level === level), { x: "at", y: "arm", text: (s: { word: string }) => String(kinds.indexOf(s.word) + 1), dy: -12 * (level + 1), fill: "var(--ink)" }),
            ),
            Plot.ruleX([0], { stroke: "var(--strong-line)" }),
          ],
        }}
      />
      <p>{kinds.map((k, i) => visible(`${i + 1} ${k}`)).join(" · ")}</p>
      <p class="soft">
        {missing
          .filter((m) => m.words.length)
          .map((m) => visible(`${m.arm} did not reach: ${m.words.join(", ")}`))
          .join(" · ")}
      </p>
    </>
  );
}

const levels = [0, 1, 2, 3];

/** The milestones of a run in order; a number has its own line where it would stand on one before it. */
function apart(c: VersusCell, closeMs: number): { arm: string; word: string; at: number; level: number }[] {
  const last = levels.map(() => -Infinity);
  return [...(c.milestones ?? [])]
    .sort((a, b) => a.elapsedMs - b.elapsedMs)
    .map((m) => {
      const level = Math.max(0, last.findIndex((at) => m.elapsedMs - at >= closeMs));
      last[level] = m.elapsedMs;
      return { arm: c.arm, word: milestoneWord(m.kind), at: m.elapsedMs / 1000, level };
    });
}

function outcomeOf(c: VersusCell): Outcome {
  return c.resolved === null ? "error" : c.resolved ? "pass" : "fail";
}

export function Columns(props: { id: string; cells: VersusCell[] }): JSX.Element {
  return (
    <div class="columns">
      {props.cells.map((c, i) => (
        <Column key={c.arm} id={props.id} cell={c} tone={toneOf(i)} />
      ))}
    </div>
  );
}

function Column(props: { id: string; cell: VersusCell; tone: string }): JSX.Element {
  const { cell } = props;
  const path = ["experiments", props.id, "cells", cell.task, cell.arm, String(cell.run)].map(encodeURIComponent).join("/");
  const { data, failure } = useApi<CellDetail>(url(path));
  const citations = [...(data?.judge?.votes ?? []).flatMap((v) => v.citations ?? []), ...citedBy(cell.verdicts)];
  return (
    <div class="column">
      <h3>
        <Mark outcome={outcomeOf(cell)} />{" "}
        <Link to={["x", props.id, cell.task, cell.arm, cell.run]} class={props.tone}>
          <Name text={cell.arm} max={28} />
        </Link>
      </h3>
      <p class="soft">
        {[data ? money(data.cell.costUsd) : "", cell.problem ? "" : count(cell.turns, "turn"), cell.problem ? "" : duration(cell.wallClockMs) + " agent time", cell.blended === null ? "" : `quality ${cell.blended.toFixed(2)}`].filter(Boolean).join(" · ")}
      </p>
      {cell.problem && <p class="fail-text">{visible(cell.problem)}</p>}
      {cell.verdicts?.length ? <PanelVotes verdicts={cell.verdicts} /> : null}
      {cell.droppedClaims > 0 && <p class="soft">{count(cell.droppedClaims, "claim")} of judges dropped: the cited line does not hold</p>}
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
      {data && <Evidence detail={data} />}
      {data?.diff && <Diff diff={data.diff} citations={citations} />}
    </div>
  );
}
