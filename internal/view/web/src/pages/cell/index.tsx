// One cell: the outcome, and its evidence row by row down to the transcript.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { frozen, has, useApi, url } from "../../api";
import { Chart, tokensPerTurn, type TurnTokens } from "../../charts";
import { Diff } from "../../diff";
import { absolute, bytes, count, duration, money, short, spent, visible } from "../../format";
import { Bar } from "../../frame";
import { useKeys } from "../../keys";
import { useEvents } from "../../live";
import { go, href, place } from "../../router";
import { OwnTranscript } from "../../transcript";
import type { Cell, CellDetail, CellId, Status, TraceOverview } from "../../types";
import { Copy, Empty, Link, Mark, outcomeWord, Page, Problem, Reading, Scroll, Warnings } from "../../ui";
import type { PanelVerdict, VersusCell } from "../../types";
import { Asked } from "../../asked";
import { Calls } from "../../behind";
import { SideBySide } from "./compare";
import { citedBy, Evidence, Milestones, PanelVotes, Votes } from "./evidence";
import { began } from "../experiment/grid";
import { CellControls } from "../experiment/live";
import { Notes } from "../../notes";

export function CellPage(props: { id: string; task: string; arm: string; run: string }): JSX.Element {
  const attempt = place.value.query.get("attempt") ?? undefined;
  const { data, failure, reload } = useApi<CellDetail>(url(addressOf(props.id, props), [["attempt", attempt]]));
  const [shown, setShown] = useState<CellDetail | undefined>(undefined);
  const [status, setStatus] = useState<Status | null>(null);
  if (data && data !== shown) setShown(data);
  const same = (c: CellId): boolean => c.task === props.task && c.arm === props.arm && String(c.run) === props.run;
  const detail = data ?? (shown && same(shown.cell) ? shown : undefined);
  const changes = detail && (detail.experiment.running || ["waiting", "running", "retry"].includes(detail.cell.state));
  useEvents(changes ? { experiment: props.id } : null, {
    watching: reload,
    status: (s: Status) => setStatus(s),
    cells: (e: { cells: Cell[] }) => {
      if (e.cells.some(same)) reload();
    },
  });
  const crumbs = [
    { text: detail?.experiment.name ?? "experiment", to: has(url(`experiments/${encodeURIComponent(props.id)}`)) ? ["x", props.id] : undefined },
    { text: props.task },
    { text: props.arm },
    { text: `run ${props.run}` },
  ];
  // A key that is pressed before the next cell has been read counts all the same.
  const owed = useRef(0);
  const left = useRef<CellDetail | undefined>(undefined);
  const follow = (): void => {
    if (!owed.current || !detail || !same(detail.cell) || left.current === detail) return;
    const to = owed.current > 0 ? detail.next : detail.previous;
    owed.current = to ? owed.current - Math.sign(owed.current) : 0;
    if (!to) return;
    left.current = detail;
    go(href(["x", props.id, to.task, to.arm, to.run]));
  };
  const step = (by: number): void => {
    owed.current += by;
    follow();
  };
  useEffect(follow, [detail, props.task, props.arm, props.run]);
  useKeys(
    [
      { keys: "[", does: "previous cell", run: () => step(-1) },
      { keys: "]", does: "next cell", run: () => step(1) },
    ],
    [detail, props.task, props.arm, props.run],
  );
  return (
    <>
      <Bar crumbs={crumbs}>
        {status && detail && <CellControls id={props.id} status={status} onStatus={setStatus} cell={detail.cell} />}
        <StepTo id={props.id} to={detail?.previous} text="previous" keys="[" />
        <StepTo id={props.id} to={detail?.next} text="next" keys="]" />
      </Bar>
      <Page title={`${props.task} ▸ ${props.arm} ▸ run ${props.run}`} wide>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {!detail && !failure && <Reading />}
        {detail && <Body id={props.id} detail={detail} onChange={reload} />}
      </Page>
    </>
  );
}

function addressOf(id: string, of: { task: string; arm: string; run: string | number }): string {
  return ["experiments", id, "cells", of.task, of.arm, of.run].map(encodeURIComponent).join("/");
}

function StepTo(props: { id: string; to: CellId | null | undefined; text: string; keys: string }): JSX.Element {
  const to = props.to && has(url(addressOf(props.id, props.to))) ? props.to : null;
  if (!to) return <span class="soft no-print">{props.text}</span>;
  return (
    <Link class="no-print" to={["x", props.id, to.task, to.arm, to.run]} title={visible(`${to.task} ▸ ${to.arm} ▸ run ${to.run}  (${props.keys})`)}>
      {props.text}
    </Link>
  );
}

function Body(props: { id: string; detail: CellDetail; onChange: () => void }): JSX.Element {
  const { detail } = props;
  const main = detail.traces?.find((t) => t.role === "agent") ?? detail.traces?.[0];
  const panel = usePanel(props.id, detail);
  const { overview } = useApi<TraceOverview>(main ? url("trace/overview", [["trace", main.trace]]) : null).data ?? {};
  const given = detail.record?.treatment;
  const citations = useMemo(() => [...(detail.judge?.votes ?? []).flatMap((v) => v.citations ?? []), ...citedBy(panel)], [detail.judge, panel]);
  return (
    <>
      <Outcome id={props.id} detail={detail} />
      <Warnings list={detail.problems} />
      <Part title="What the agent was asked" aside={given ? `context ${visible(given.context)}` : ""}>
        <Asked trace={main?.trace} prompt={overview && overview.taskPrompt} given={given} notStarted={detail.attempts?.find((a) => a.attempt === detail.cell.attempt)?.notStarted} />
      </Part>
      <Part title="Evidence">
        <Evidence detail={detail} />
      </Part>
      <Part title="Notes">
        <Notes id={props.id} detail={detail} onChange={props.onChange} />
      </Part>
      {detail.milestones?.length ? (
        <Part title="Milestones">
          <Milestones list={detail.milestones} endMs={detail.cell.durationMs} trace={main?.trace} entryOf={(turn) => detail.perTurn?.find((t) => t.turn === turn)?.index} />
        </Part>
      ) : null}
      <Part title="Diff" aside={detail.diff ? diffTotals(detail.diff) : ""}>
        {detail.diff ? <Diff diff={detail.diff} citations={citations} /> : <p class="soft">{noDiff(detail)}</p>}
      </Part>
      {detail.judge && (
        <Part title="Judges" aside={detail.judge.verdict}>
          <Votes judge={detail.judge} />
        </Part>
      )}
      {panel?.length ? (
        <Part title="Panel" aside={<Link to={["versus", props.id]} query={{ task: detail.cell.task, run: String(detail.cell.run) }}>head to head</Link>}>
          <PanelVotes verdicts={panel} />
        </Part>
      ) : null}
      {detail.perTurn?.length ? (
        <Part title="Tokens and cost per turn">
          <PerTurn list={detail.perTurn} trace={main?.trace} />
        </Part>
      ) : null}
      {(detail.attempts?.length ?? 0) > 1 && (
        <Part title="Attempts">
          <Attempts id={props.id} detail={detail} />
        </Part>
      )}
      {main && detail.hasCalls && <Calls trace={main.trace} />}
      <Part title="Transcript" aside={<TraceLinks detail={detail} more={main && <SideBySide id={props.id} detail={detail} trace={main.trace} />} />}>
        {main ? <OwnTranscript key={main.trace} trace={main.trace} /> : <Empty title="There is no trace of this attempt." />}
      </Part>
    </>
  );
}

/** What a panel of judges said about a cell, where one was asked. */
function usePanel(id: string, detail: CellDetail): PanelVerdict[] | null | undefined {
  const { task, arm, run } = detail.cell;
  const path = ["experiments", id, "versus", "show", task, String(run)].map(encodeURIComponent).join("/");
  const { data } = useApi<{ columns: { arm: string; cell: VersusCell }[] }>(detail.hasPanel ? url(path) : null);
  return data?.columns.find((c) => c.arm === arm)?.cell.verdicts;
}

export function Part(props: { title: string; aside?: ComponentChildren; children: ComponentChildren }): JSX.Element {
  return (
    <section>
      <h2>
        {props.title} {props.aside && <span class="aside">{props.aside}</span>}
      </h2>
      {props.children}
    </section>
  );
}

function diffTotals(diff: NonNullable<CellDetail["diff"]>): string {
  const own = diff.files || !diff.generated ? `${count(diff.files, "file")}, +${diff.added} −${diff.removed}` : "";
  const generated = diff.generated ? count(diff.generated, "generated file") : "";
  return [own, generated].filter(Boolean).join(", and ");
}

function noDiff(detail: CellDetail): string {
  if (running(detail)) return "The diff is taken when the agent has ended.";
  return detail.record?.diffPath ? "The diff cannot be read." : "There is no diff of this attempt: nothing was changed, or it ended before.";
}

function running(detail: CellDetail): boolean {
  return detail.cell.state === "running" || detail.cell.state === "waiting";
}

function Outcome(props: { id: string; detail: CellDetail }): JSX.Element {
  const { cell } = props.detail;
  const facts = !began(cell)
    ? [cell.state === "error" || cell.state === "retry" ? "the agent was not started" : ""]
    : [spent(cell.costUsd), count(cell.turns, "turn"), duration(cell.durationMs) + " with grading", short(cell.tokens) + " tokens", `attempt ${cell.attempt} of ${Math.max(cell.attempts, cell.attempt)}`];
  return (
    <div class="outcome">
      <h1 class="sentence">
        <Mark outcome={cell.state} label="" /> {outcomeWord(cell.state)}
        {cell.errorClass && <span class="soft"> {visible(cell.errorClass)}</span>}
      </h1>
      <p>{facts.filter(Boolean).join(" · ")}</p>
      {cell.why && <p>{visible(cell.why)}</p>}
      {props.detail.wayOut && <p>What to do: {props.detail.wayOut}.</p>}
      <p class="soft">
        <code>{visible(`${cell.task}/${cell.arm}/${cell.run}`)}</code> <Copy text={`${cell.task}/${cell.arm}/${cell.run}`} label="copy" />
        {cell.startMs > 0 && <> started {absolute(cell.startMs)}</>}
      </p>
      {!frozen && (
        <p class="no-print">
          <a href={url(addressOf(props.id, cell) + "/file")} download>
            share as one file
          </a>
        </p>
      )}
    </div>
  );
}

function TraceLinks(props: { detail: CellDetail; more: ComponentChildren }): JSX.Element {
  const list = props.detail.traces ?? [];
  return (
    <>
      {list.map((t) => (
        <span key={t.trace}>
          <Link to={["trace", t.trace]}>open {visible(t.role)}</Link> <span class="soft">{bytes(t.bytes)}</span>{" "}
        </span>
      ))}
      {props.more}
    </>
  );
}

const kinds = ["input", "cache write", "cache read", "output"];

function PerTurn(props: { list: NonNullable<CellDetail["perTurn"]>; trace?: string }): JSX.Element {
  const { list } = props;
  const bars = useMemo(
    () =>
      list.slice(0, 2000).flatMap((t): TurnTokens[] => [
        { turn: t.turn, kind: "input", tokens: t.inputTokens },
        { turn: t.turn, kind: "cache write", tokens: t.cacheCreationInputTokens },
        { turn: t.turn, kind: "cache read", tokens: t.cacheReadInputTokens },
        { turn: t.turn, kind: "output", tokens: t.outputTokens },
      ]),
    [list],
  );
  return (
    <>
      <Chart options={tokensPerTurn(bars, kinds)} depends={[bars]} label={`Tokens of ${count(list.length, "turn")}; the table below has the numbers`} />
      <p class="key">
        {kinds.map((k, i) => (
          <span key={k}>
            <span class={"swatch swatch-" + i} /> {k}
          </span>
        ))}
      </p>
      <details>
        <summary>table</summary>
        <Scroll>
          <table>
            <thead>
              <tr>
                {["turn", ...kinds, "cost"].map((h) => (
                  <th key={h} scope="col" class="num">
                    {h}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {list.slice(0, 500).map((t) => (
                <tr key={t.lane + t.turn}>
                  <td class="num">{props.trace ? <Link to={["trace", props.trace]} query={{ at: String(t.index) }}>{t.turn}</Link> : t.turn}</td>
                  {[t.inputTokens, t.cacheCreationInputTokens, t.cacheReadInputTokens, t.outputTokens].map((n, i) => (
                    <td key={i} class="num">
                      {n}
                    </td>
                  ))}
                  <td class="num">{money(t.costUsd)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </details>
    </>
  );
}

function Attempts(props: { id: string; detail: CellDetail }): JSX.Element {
  const { cell } = props.detail;
  return (
    <Scroll>
      <table>
        <tbody>
          {(props.detail.attempts ?? []).map((a) => (
            <tr key={a.attempt}>
              <td>
                <Link to={["x", props.id, cell.task, cell.arm, cell.run]} query={{ attempt: a.final ? undefined : String(a.attempt) }}>
                  attempt {a.attempt}
                </Link>
              </td>
              <td>
                {visible(a.verdict)} <span class="soft">{visible(a.errorClass)}</span>
              </td>
              <td class="num">{a.notStarted ? "–" : money(a.costUsd)}</td>
              <td class="num">{a.notStarted ? "–" : count(a.turns, "turn")}</td>
              <td class="num">{a.notStarted ? "–" : duration(a.durationMs) + " with grading"}</td>
              <td>{visible(a.errorMessage)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

