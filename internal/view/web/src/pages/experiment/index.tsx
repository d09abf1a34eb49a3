// One experiment: the decision first, then the grid, then everything it rests on.
import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { frozen, useApi, url } from "../../api";
import { visible } from "../../format";
import { Bar } from "../../frame";
import { useEvents } from "../../live";
import { place } from "../../router";
import type { Cell, Cells, Experiment, ExperimentDetail, Forest, Status } from "../../types";
import { Empty, Link, Page, Problem, Reading, Warnings } from "../../ui";
import { Checks, CostAndQuality, Errors, HowItWasRun, TimeAndTurns } from "./analysis";
import { Decision, Pairs } from "./decision";
import { Grid } from "./grid";
import { Controls, LiveLine, RunningCells } from "./live";
import { Views } from "../../notes";
import { PlanMore } from "./plan";

const tabs = [
  ["", "grid"],
  ["cost", "cost × quality"],
  ["time", "time and turns"],
  ["checks", "checks"],
  ["errors", "errors"],
  ["plan", "plan"],
  ["run", "how it was run"],
] as const;

export function ExperimentPage(props: { id: string }): JSX.Element {
  const base = `experiments/${encodeURIComponent(props.id)}`;
  const detail = useSteady<ExperimentDetail>(url(base));
  const cells = useSteady<Cells>(url(`${base}/cells`));
  const query = place.value.query;
  // Which two of several arms the grid compares. An exported file has the first two.
  const pair: [string, string | undefined][] = frozen ? [] : [["a", query.get("a") ?? undefined], ["b", query.get("b") ?? undefined]];
  const compared = (detail.data?.report?.groups?.length ?? 0) > 1;
  const forest = useSteady<Forest>(compared ? url(`${base}/forest`, pair) : null);
  const [status, setStatus] = useState<Status | null>(null);
  const [changed, setChanged] = useState(new Map<string, Cell>());
  useEvents(detail.data && unfinished(detail.data.experiment) ? { experiment: props.id } : null, {
    watching: () => {
      setChanged(new Map());
      for (const part of [detail, cells, forest]) part.reload();
    },
    status: (s: Status) => setStatus(s),
    cells: (e: { cells: Cell[] }) => setChanged((old) => e.cells.reduce((m, c) => m.set(keyOf(c), c), new Map(old))),
    report: () => {
      detail.reload();
      forest.reload();
    },
  });
  const live = status ?? detail.data?.live ?? null;
  const name = detail.data?.experiment.name ?? "";
  const merged = cells.data && merge(cells.data, changed);
  return (
    <>
      <Bar crumbs={name ? [{ text: name }] : []}>
        {live && live.state !== "ended" && <LiveLine status={live} />}
        {live?.controllable && live.state !== "ended" && <Controls id={props.id} status={live} onStatus={setStatus} />}
      </Bar>
      <Page title={name} wide>
        {detail.failure && <Problem message={detail.failure.message}>{detail.failure.hint}</Problem>}
        {!detail.failure && !detail.data && <Reading />}
        {detail.data && <Body id={props.id} detail={detail.data} cells={merged} forest={forest.data} live={live} onStatus={setStatus} onChange={detail.reload} />}
      </Page>
    </>
  );
}

/** What has not run to its end may change at any time. */
function unfinished(e: Experiment): boolean {
  return e.state === "running" || e.state === "empty" || (e.state === "incomplete" && e.done < e.planned);
}

/** Keeps what was read while it is read anew, so that nothing flickers. */
function useSteady<T>(address: string | null): { data?: T; failure?: { message: string; hint: string }; reload: () => void } {
  const loaded = useApi<T>(address);
  const last = useRef<T | undefined>(undefined);
  useEffect(() => {
    if (loaded.data) last.current = loaded.data;
    if (loaded.failure) last.current = undefined;
  }, [loaded.data, loaded.failure]);
  const reload = useRef(loaded.reload);
  reload.current = loaded.reload;
  return { data: loaded.data ?? last.current, failure: loaded.failure, reload: useCallback(() => reload.current(), []) };
}

function keyOf(c: { task: string; arm: string; run: number }): string {
  return JSON.stringify([c.task, c.arm, c.run]);
}

function merge(cells: Cells, changed: Map<string, Cell>): Cells {
  if (changed.size === 0) return cells;
  return { ...cells, cells: cells.cells.map((c) => changed.get(keyOf(c)) ?? c) };
}

interface BodyProps {
  id: string;
  detail: ExperimentDetail;
  cells?: Cells;
  forest?: Forest;
  live: Status | null;
  onStatus: (status: Status) => void;
  onChange: () => void;
}

function Body(props: BodyProps): JSX.Element {
  const { detail, cells, live } = props;
  const e = detail.experiment;
  if (e.state === "empty" || (!detail.report && !cells?.cells.length)) {
    return (
      <>
        <h1>{visible(e.name)}</h1>
        <Empty title={e.kind === "comparison" ? "These two cannot be compared." : e.state === "damaged" ? "This run directory cannot be read." : "Nothing has been run here yet."}>
          <p>{visible(e.problem ?? "")}</p>
          {e.stopped && <p>{visible(e.stopped)}</p>}
          {e.kind !== "comparison" && <p>Results appear as soon as the first cell has ended.</p>}
          {(detail.continue ?? detail.repeat) && <code>{visible(detail.continue ?? detail.repeat)}</code>}
        </Empty>
      </>
    );
  }
  return (
    <>
      <Decision detail={detail} />
      <Trouble detail={detail} />
      {detail.family && <Pairs id={props.id} family={detail.family} />}
      {live && live.state !== "ended" && live.running?.length ? <RunningCells id={props.id} status={live} onStatus={props.onStatus} /> : null}
      {frozen ? <All {...props} /> : <Tabs {...props} />}
    </>
  );
}

function Trouble(props: { detail: ExperimentDetail }): JSX.Element | null {
  const { problems, notes, experiment, comparisonError } = props.detail;
  const lines = (problems ?? []).map((p) => (p.line ? `results.jsonl, line ${p.line}: ${p.message}` : p.message));
  if (!lines.length && !notes?.length && !comparisonError && experiment.state !== "damaged") return null;
  return (
    <div class="trouble">
      {experiment.state === "damaged" && <Problem message={experiment.problem ?? "some of this run directory cannot be read"} />}
      <Warnings list={[...(comparisonError ? [comparisonError] : []), ...(notes ?? []), ...lines.slice(0, 20)]} />
      {lines.length > 20 && <p class="soft">and {lines.length - 20} more</p>}
    </div>
  );
}

function Tabs(props: BodyProps): JSX.Element {
  const current = place.value.query.get("tab") ?? "";
  const { kind } = props.detail.experiment;
  const versus = kind === "versus" || (kind !== "comparison" && (props.cells?.arms.length ?? 0) > 1);
  return (
    <>
      <nav class="tabs" aria-label="Views of this experiment">
        {tabs.map(([tab, text]) => (
          (tab === "plan" || tab === "run") && props.detail.experiment.kind === "comparison" ? null : <Link key={tab} to={["x", props.id]} query={{ ...Object.fromEntries(place.value.query), tab }} current={tab === current}>
            {text}
          </Link>
        ))}
        {versus && <Link to={["versus", props.id]}>head to head</Link>}
        {props.detail.skill && <Link to={["skill", props.id]}>skill</Link>}
      </nav>
      {props.detail.experiment.kind !== "comparison" && <Views id={props.id} list={props.detail.views} onChange={props.onChange} />}
      <Tab tab={current} {...props} />
    </>
  );
}

function Tab(props: BodyProps & { tab: string }): JSX.Element | null {
  const { detail, cells, forest } = props;
  const groups = detail.report?.groups ?? [];
  if (!cells) return <Reading />;
  switch (props.tab) {
    case "cost":
      return <CostAndQuality groups={groups} comparison={detail.comparison} />;
    case "time":
      return <TimeAndTurns cells={cells} groups={groups} comparison={detail.comparison} />;
    case "checks":
      return <Checks groups={groups} />;
    case "errors":
      return <Errors id={props.id} cells={cells} groups={groups} />;
    case "plan":
      return <PlanMore id={props.id} dir={detail.experiment.dir} />;
    case "run":
      return <HowItWasRun detail={detail} />;
    default:
      return <Grid id={props.id} cells={cells} forest={forest} comparison={detail.comparison} groups={groups} />;
  }
}

/** The exported page has no tabs: it is read from top to bottom, and printed. */
function All(props: BodyProps): JSX.Element {
  return (
    <>
      {props.detail.skill && <Link to={["skill", props.id]}>the cases of the skill</Link>}
      {tabs.map(([tab, text]) =>
        tab === "plan" ? null : (
          <section key={tab} class={tab === "" ? "first-page" : ""}>
            <h2>{text}</h2>
            <Tab tab={tab} {...props} />
          </section>
        ),
      )}
    </>
  );
}
