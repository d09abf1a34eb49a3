// Head to head: agents on the same tasks, one beside the other.
import type { JSX } from "preact";
import { useApi, url } from "../../api";
import { count, duration, factor, money, percent, points, prose, visible } from "../../format";
import { Bar } from "../../frame";
import { useKeys } from "../../keys";
import { place, setQuery } from "../../router";
import type { ExperimentDetail } from "../../types";
import { Empty, Link, Name, Page, Problem, rateLabel, Reading, Scroll, Warnings, Whisker } from "../../ui";
import type { EvalReport, Pair } from "../../types";
import { toneOf } from "../experiments";
import { Columns, MilestonesOfAll } from "./versuscells";

export function VersusPage(props: { id: string }): JSX.Element {
  const base = `experiments/${encodeURIComponent(props.id)}`;
  const { data, failure } = useApi<{ report: EvalReport }>(url(`${base}/versus`));
  const detail = useApi<ExperimentDetail>(url(base)).data;
  const experiment = detail?.experiment;
  return (
    <>
      <Bar crumbs={[{ text: experiment?.name ?? "experiment", to: ["x", props.id] }, { text: "head to head" }]} />
      <Page title={`${experiment?.name ?? ""} head to head`} wide>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {!data && !failure && <Reading />}
        <Warnings list={detail?.notes ?? []} />
        {data && <Body id={props.id} report={data.report} />}
      </Page>
    </>
  );
}

function Body(props: { id: string; report: EvalReport }): JSX.Element {
  const { report } = props;
  if (!report.cells?.length) return <Empty title="No agent has worked on a task yet." />;
  return (
    <>
      <div class="outcome">
        <h1 class="sentence">{visible(report.statement.charAt(0).toUpperCase() + report.statement.slice(1))}</h1>
        <p class="soft">{visible([report.isolation && `workspaces by ${report.isolation}`, report.sandbox && `isolated by ${report.sandbox}`, report.network && `network: ${report.network}`].filter(Boolean).join(" · "))}</p>
        <Warnings list={report.warnings} />
      </div>
      <Agents report={report} />
      <OneTask id={props.id} report={report} />
      <Pairs pairs={report.pairs ?? []} />
      <Calibration id={props.id} report={report} />
    </>
  );
}

function Agents(props: { report: EvalReport }): JSX.Element {
  return (
    <section>
      <h2>Agents</h2>
      <Scroll>
        <table>
          <thead>
            <tr>
              <th scope="col">agent</th>
              <th scope="col" class="num">pass rate</th>
              <th scope="col">95% CI</th>
              {["runs", "missing", "quality", "median agent time", "median turns", "cost", "flags"].map((h) => (
                <th key={h} scope="col" class="num">
                  {h}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {(props.report.perAgent ?? []).map((a, i) => (
              <tr key={a.arm}>
                <td class={toneOf(i)}>
                  <Name text={a.arm} max={28} />
                </td>
                <td class="num">{percent(a.passRate?.est)}</td>
                <td>
                  <Whisker value={a.passRate} from={0} to={1} width={180} tone={toneOf(i)} label={visible(rateLabel(a.arm, a.passRate))} />
                </td>
                <td class="num">{a.nRuns}</td>
                <td class="num">{a.missing}</td>
                <td class="num">{a.blended === null ? "unknown" : a.blended.toFixed(2)}</td>
                <td class="num">{duration(a.efficiency.wallClockMs)}</td>
                <td class="num">{a.efficiency.turns ?? "unknown"}</td>
                <td class="num">{money(a.costUsd)}</td>
                <td class="num">{Object.values(a.integrity ?? {}).reduce((n, m) => n + m, 0)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

function OneTask(props: { id: string; report: EvalReport }): JSX.Element {
  const { report } = props;
  const tasks = (report.tasks ?? []).map((t) => t.id);
  const task = place.value.query.get("task") ?? tasks[0] ?? "";
  const runs = [...new Set((report.cells ?? []).filter((c) => c.task === task).map((c) => c.run))].sort((a, b) => a - b);
  const run = Number(place.value.query.get("run") ?? runs[0] ?? 0);
  const order = (report.perAgent ?? []).map((a) => a.arm);
  const cells = (report.cells ?? []).filter((c) => c.task === task && c.run === run).sort((a, b) => order.indexOf(a.arm) - order.indexOf(b.arm));
  const step = (by: number): void => {
    const to = tasks[tasks.indexOf(task) + by];
    if (to) setQuery({ task: to, run: undefined });
  };
  useKeys(
    [
      { keys: "]", does: "next task", run: () => step(1) },
      { keys: "[", does: "previous task", run: () => step(-1) },
    ],
    [task, tasks.length],
  );
  return (
    <section>
      <h2>One task</h2>
      <div class="tools">
        <select aria-label="Task" value={task} onChange={(e) => setQuery({ task: e.currentTarget.value, run: undefined })}>
          {tasks.map((t) => (
            <option key={t} value={t}>
              {visible(t)}
            </option>
          ))}
        </select>
        <select aria-label="Run" value={String(run)} onChange={(e) => setQuery({ run: e.currentTarget.value })}>
          {runs.map((r) => (
            <option key={r} value={String(r)}>
              run {r}
            </option>
          ))}
        </select>
      </div>
      <Preferences pairs={report.pairs ?? []} task={task} run={run} />
      <MilestonesOfAll cells={cells} />
      <Columns id={props.id} cells={cells} />
    </section>
  );
}

/** Whom judges preferred in this run when they saw two at once, and whether swapping them turned it around. */
function Preferences(props: { pairs: Pair[]; task: string; run: number }): JSX.Element | null {
  const list = props.pairs.flatMap((p) => (p.pairwise ?? []).filter((w) => w.task === props.task && w.run === props.run).map((w) => ({ ...w, a: p.a, b: p.b })));
  if (!list.length) return null;
  return (
    <ul class="preferences">
      {list.map((w, i) => (
        <li key={i}>
          {visible(`${w.a} or ${w.b}: ${w.winner || "no vote counts"}`)}
          {w.biasDetected && <span class="fail-text"> turned around when the positions were swapped</span>}
        </li>
      ))}
    </ul>
  );
}

function Pairs(props: { pairs: Pair[] }): JSX.Element | null {
  if (!props.pairs.length) return null;
  return (
    <section>
      <h2>Pairs</h2>
      {props.pairs.map((p) => (
        <div key={p.a + "\n" + p.b} class="pair">
          <p class="strong">{prose(p.sentence)}</p>
          <p class="soft">
            {[
              compared(p),
              p.flipRate === null ? "" : `${percent(p.flipRate)} turned around when the positions were swapped (${p.primacy} for the first, ${p.recency} for the second)`,
              p.cost?.all ? `cost ${factor(p.cost.all.est)}` : "",
            ]
              .filter(Boolean)
              .join(" · ")}
          </p>
          <Warnings list={p.obstacles} />
          <Gaps pair={p} />
        </div>
      ))}
    </section>
  );
}

/** How many comparisons the judges made: one that nobody voted in is none. */
function compared(p: Pair): string {
  const asked = p.pairwise?.length ?? 0;
  const voted = (p.pairwise ?? []).filter((w) => w.winner).length;
  if (!voted) return asked ? `no vote counts in ${count(asked, "comparison")} that judges were asked for` : "no comparison by judges";
  return count(voted, "comparison") + " by judges" + (voted < asked ? `, of ${asked} that were asked for` : "");
}

function Gaps(props: { pair: Pair }): JSX.Element | null {
  const { dimensions, milestones, a, b } = props.pair;
  if (!dimensions?.length && !milestones?.length) return null;
  return (
    <details>
      <summary>
        dimensions and milestones, {visible(a)} minus {visible(b)}
      </summary>
      <Scroll>
        <table>
          <tbody>
            {(dimensions ?? []).map((d) => (
              <tr key={d.dimension}>
                <td>{visible(d.dimension)}</td>
                <td class="num">{points(d.corrected?.est ?? d.observed.est)} points</td>
                <td class="soft">{d.corrected ? "corrected for the judges' errors" : visible(d.status || "uncalibrated")}</td>
                <td class="soft">{count(d.nTasks, "task")}</td>
              </tr>
            ))}
            {(milestones ?? []).map((m) => (
              <tr key={m.kind}>
                <td>{visible(m.kind.replaceAll("_", " "))}</td>
                <td class="num">{later(m.deltaElapsedMs)}</td>
                <td class="soft">in {count(m.both, "run")} that both reached it</td>
                <td class="soft">
                  not reached: {m.censoredA} and {m.censoredB}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
}

function later(ms: number | null): string {
  if (ms === null) return "unknown";
  return ms === 0 ? "the same" : duration(Math.abs(ms)) + (ms > 0 ? " later" : " earlier");
}

function Calibration(props: { id: string; report: EvalReport }): JSX.Element {
  const { panel } = props.report;
  const list = props.report.calibration ?? [];
  return (
    <section>
      <h2>Judges</h2>
      {panel.models?.length ? (
        <p>
          {visible(panel.models.join(", "))}
          <span class="soft">
            {" "}
            · worth {panel.nEff === null ? "an unknown number of" : panel.nEff.toFixed(1)} independent judges
            {panel.missing > 0 ? ` · ${count(panel.missing, "question")} without a reply` : ""}
          </span>
        </p>
      ) : (
        <Empty title="No judge was asked.">
          <p>Evidence decides here: tests, checks, integrity. A panel is asked with fit versus judge.</p>
        </Empty>
      )}
      <Members list={panel.members ?? []} />
      {list.length > 0 && (
        <Scroll>
          <table>
            <thead>
              <tr>
                <th scope="col">dimension</th>
                <th scope="col">calibration</th>
                <th scope="col" class="num">passes found</th>
                <th scope="col" class="num">failures found</th>
                <th scope="col" class="num">labels</th>
              </tr>
            </thead>
            <tbody>
              {list.map((c) => (
                <tr key={c.dimension}>
                  <td>{visible(c.dimension)}</td>
                  <td class={c.status === "ok" ? "" : "fail-text"} title={visible(c.reason ?? "")}>
                    {visible(c.status)}
                  </td>
                  <td class="num">{percent(c.tpr)}</td>
                  <td class="num">{percent(c.tnr)}</td>
                  <td class="num">{c.labels}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {panel.models?.length ? (
        <p>
          <Link to={["labels", props.id]}>Label runs, blind</Link>
        </p>
      ) : null}
    </section>
  );
}

type Member = NonNullable<EvalReport["panel"]["members"]>[number];

/** Who judged, how well, and what that cost: the table of the terminal. */
function Members(props: { list: Member[] }): JSX.Element | null {
  if (!props.list.length) return null;
  return (
    <Scroll>
      <table class="members">
        <thead>
          <tr>
            <th scope="col">member</th>
            <th scope="col">model</th>
            {["verdicts", "abstained", "dropped claims", "flip rate", "cost"].map((h) => (
              <th key={h} scope="col" class="num">
                {h}
              </th>
            ))}
            <th scope="col">self-test</th>
          </tr>
        </thead>
        <tbody>
          {props.list.map((m) => (
            <tr key={m.name}>
              <td>{visible(m.name)}</td>
              <td>{visible(m.model)}</td>
              <td class="num">{m.verdicts}</td>
              <td class="num">{m.abstained}</td>
              <td class="num">{m.droppedClaims}</td>
              <td class="num">{m.swaps ? `${m.swaps.flipRate.toFixed(2)} of ${m.swaps.decisive}` : "–"}</td>
              <td class="num">{costOf(m.cost)}</td>
              <td class={m.leftOut ? "fail-text" : ""}>{visible(tested(m))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function costOf(c: Member["cost"]): string {
  if (!c.unpriced) return money(c.usd);
  return c.unpriced === c.replies ? "unknown" : `${money(c.usd)} and ${c.unpriced} without a price`;
}

function tested(m: Member): string {
  if (m.leftOut) return "left out: " + m.leftOut;
  if (!m.selfTest) return "not taken";
  return m.selfTest.missing ? `${count(m.selfTest.missing, "reply", "replies")} missing` : "passed";
}
