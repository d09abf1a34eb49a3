// What the experiment rests on besides the grid: cost, time, checks, errors, and how it was run.
import type { JSX } from "preact";
import { Chart, costAgainstQuality, spread, turnCounts, type CostPoint, type Measured, type Median } from "../../charts";
import { absolute, count, cutMiddle, duration, factor, money, percent, unknown, visible, whole } from "../../format";
import type { Cells, CheckRate, Comparison, ExperimentDetail, Group, Ratio } from "../../types";
import { cellPath, Copy, Empty, Link, Mark, Name, Scroll, type Range } from "../../ui";
import { toneOf } from "../experiments";

function armOf(g: Group): string {
  return g.provenance.arm || g.name;
}

export function CostAndQuality(props: { groups: Group[]; comparison: Comparison | null }): JSX.Element {
  const list: CostPoint[] = [];
  for (const [index, g] of props.groups.entries()) {
    const cost = perRun(g);
    if (g.passRate && cost !== null) list.push({ arm: armOf(g), index, rate: g.passRate, cost });
  }
  return (
    <div class="plots">
      {list.length ? (
        <Chart
          options={costAgainstQuality(list)}
          depends={[JSON.stringify(list)]}
          label={"Cost against quality. " + list.map((p) => `${p.arm}: ${percent(p.rate.est)} for ${money(p.cost)} a run`).join("; ")}
          caption="One mark per arm; the whisker is the 95% CI of its pass rate. Up and to the left is better."
        />
      ) : (
        <Empty title="No cost is known yet.">
          <p>Costs appear once a run has finished and its model has a price; set prices with FIT_PRICES.</p>
        </Empty>
      )}
      <div>
        <Scroll>
          <table>
            <thead>
              <tr>
                <th scope="col">arm</th>
                <th scope="col" class="num">per run</th>
                <th scope="col" class="num">per pass</th>
                <th scope="col" class="num">all runs</th>
                <th scope="col" class="num">attempts</th>
              </tr>
            </thead>
            <tbody>
              {props.groups.map((g, i) => (
                <tr key={armOf(g)}>
                  <td class={toneOf(i)}>
                    <Name text={armOf(g)} max={24} />
                  </td>
                  <td class="num">{g.totals.runs ? money(perRun(g)) : "–"}</td>
                  <td class="num">{g.totals.runs ? limits(g.totals.costPerPass, money) : "–"}</td>
                  <td class="num">{spent(g)}</td>
                  <td class="num">{whole(g.totals.attempts)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
        <RatioLine name="cost" ratio={props.comparison?.cost} />
      </div>
    </div>
  );
}

/** What a run with a verdict cost, retries and errors included: that of arms of different sizes can be compared. */
function perRun(g: Group): number | null {
  return g.totals.costUsd === null || !g.totals.runs ? null : g.totals.costUsd / g.totals.runs;
}

function spent(g: Group): string {
  if (!g.totals.attempts) return "–";
  return g.totals.costUsd === null && g.totals.knownCostUsd > 0 ? "over " + money(g.totals.knownCostUsd) : money(g.totals.costUsd);
}

function limits(value: Range | undefined, show: (n: number | null) => string): string {
  if (!value) return "unknown";
  if (value.method === "none") return `${show(value.est)} (no CI)`;
  return value.lo === null ? show(value.est) : `${show(value.est)} [${show(value.lo)}, ${show(value.hi)}]`;
}

function RatioLine(props: { name: string; ratio?: Ratio }): JSX.Element | null {
  const { all, commonlySolved } = props.ratio ?? {};
  if (!all) return null;
  const text = (f: typeof all): string => factor(f.est) + (f.lo !== null && f.hi !== null ? ` [${f.lo.toFixed(2)}, ${f.hi.toFixed(2)}]` : "");
  return (
    <p class="ratio">
      {props.name}: {text(all)}
      {commonlySolved && <span class="soft"> · on the {count(commonlySolved.nTasks, "task")} that both solved {text(commonlySolved)}</span>}
    </p>
  );
}

export function TimeAndTurns(props: { cells: Cells; groups: Group[]; comparison: Comparison | null }): JSX.Element {
  const ended = props.cells.cells.filter((c) => c.state === "pass" || c.state === "fail" || c.state === "error");
  if (!ended.length) return <Empty title="No run has ended yet." />;
  const measured = (value: (c: (typeof ended)[number]) => number): Measured[] =>
    ended.map((c) => ({ arm: c.arm, value: value(c), outcome: c.state }));
  // An arm without a verdict has no median.
  const medians = (value: (g: Group) => number): Median[] => props.groups.map((g) => ({ arm: armOf(g), value: g.totals.runs > 0 ? value(g) : null }));
  const seconds = medians((g) => g.totals.medianDurationMs / 1000);
  const turns = medians((g) => g.totals.medianTurns);
  const say = (list: Median[], show: (n: number) => string): string =>
    list.map((m) => `${list.length > 2 ? cutMiddle(m.arm, 20) : m.arm} ${m.value === null ? unknown : show(m.value)}`).join(", ");
  const times = say(seconds, (n) => duration(1000 * n));
  const counts = say(turns, String);
  return (
    <>
      <div class="plots">
        <Chart
          options={spread(measured((c) => c.durationMs / 1000), seconds, "time of a run with grading, seconds")}
          depends={[props.cells, props.groups]}
          label={"Time per run with grading. Medians: " + times}
          caption={"One mark per run; the dashed line is the median: " + times}
        />
        <Chart
          options={turnCounts(measured((c) => c.turns), turns)}
          depends={[props.cells, props.groups]}
          label={"Turns per run. Medians: " + counts}
          caption={"Runs by their number of turns. Medians: " + counts}
        />
      </div>
      <RatioLine name="agent time" ratio={props.comparison?.time} />
      <RatioLine name="turns" ratio={props.comparison?.turns} />
    </>
  );
}

interface CheckLine {
  task: string;
  check: string;
  gate: boolean;
  arms: (CheckRate | undefined)[];
}

export function Checks(props: { groups: Group[] }): JSX.Element {
  const lines = new Map<string, CheckLine>();
  for (const [i, g] of props.groups.entries()) {
    for (const t of g.tasks) {
      for (const c of t.checks ?? []) {
        const key = JSON.stringify([t.taskId, c.source, c.check]);
        const line = lines.get(key) ?? { task: t.taskId, check: c.check, gate: c.gate ?? false, arms: [] };
        line.arms[i] = c;
        lines.set(key, line);
      }
    }
  }
  if (!lines.size) return <Empty title="No check has reported a result yet." />;
  return (
    <Scroll>
      <table>
        <thead>
          <tr>
            <th scope="col">task</th>
            <th scope="col">check</th>
            <th scope="col">kind</th>
            {props.groups.map((g, i) => (
              <th scope="col" key={armOf(g)} class={toneOf(i)}>
                <Name text={armOf(g)} max={20} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {[...lines.values()].map((line) => (
            <tr key={line.task + "\n" + line.check}>
              <td>
                <Name text={line.task} max={32} />
              </td>
              <td>
                <Name text={line.check} max={64} />
              </td>
              <td class="soft">{line.gate ? "gate" : "scored"}</td>
              {props.groups.map((g, i) => (
                <td key={armOf(g)} class="nowrap">
                  <CheckMarks rate={line.arms[i]} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function CheckMarks(props: { rate?: CheckRate }): JSX.Element {
  if (!props.rate) return <span class="soft">–</span>;
  return (
    <span class="marks" role="img" aria-label={`${props.rate.passed} of ${props.rate.n} runs`}>
      {[...props.rate.runs].map((letter, i) => (
        <Mark key={i} outcome={letter === "P" ? "pass" : letter === "F" ? "fail" : "waiting"} label="" />
      ))}
      <span class="soft">
        {" "}
        {props.rate.passed} of {props.rate.n}
      </span>
    </span>
  );
}

export function Errors(props: { id: string; cells: Cells; groups: Group[] }): JSX.Element {
  const classes = new Set(props.groups.flatMap((g) => Object.keys(g.errors ?? {})));
  const broken = props.cells.cells.filter((c) => c.state === "error" || c.state === "retry");
  if (!classes.size && !broken.length) {
    return (
      <Empty title="No attempt ended in an error.">
        <p>An error is missing data, not a failure: the run has no verdict, and is tried again.</p>
      </Empty>
    );
  }
  return (
    <>
      <Scroll>
        <table>
          <thead>
            <tr>
              <th scope="col">attempts that ended in an error</th>
              {props.groups.map((g, i) => (
                <th scope="col" key={armOf(g)} class={"num " + toneOf(i)}>
                  <Name text={armOf(g)} max={18} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {[...classes].sort().map((name) => (
              <tr key={name}>
                <td>{visible(name)}</td>
                {props.groups.map((g) => (
                  <td key={armOf(g)} class="num">
                    {g.errors?.[name] ?? 0}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {broken.length > 0 && (
        <section>
          <h2>
            Cells without a verdict {broken.length > 200 && <span class="aside">the first 200 of {whole(broken.length)}</span>}
          </h2>
          <Scroll>
            <table>
              <tbody>
                {broken.slice(0, 200).map((c) => (
                  <tr key={`${c.task}/${c.arm}/${c.run}`}>
                    <td>
                      <Mark outcome={c.state} />{" "}
                      <Link to={cellPath(props.id, c)}>
                        <Name text={`${c.task} ▸ ${c.arm} ▸ run ${c.run}`} max={56} />
                      </Link>
                    </td>
                    <td class="soft">{visible(c.errorClass)}</td>
                    <td>{visible(c.why)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        </section>
      )}
    </>
  );
}

export function HowItWasRun(props: { detail: ExperimentDetail }): JSX.Element {
  const { plan, repeat, experiment, report } = props.detail;
  const groups = report?.groups ?? [];
  return (
    <>
      <dl>
        <dt>directory</dt>
        <dd>
          <code>{visible(experiment.dir)}</code>
        </dd>
        <dt>started</dt>
        <dd>{absolute(experiment.createdMs)}</dd>
        {plan && (
          <>
            <dt>plan</dt>
            <dd>
              <code>{plan.id}</code> <Copy text={plan.id} label="copy" /> {count(plan.tasks.length, "task")} × {count(plan.arms.length, "arm")} ×{" "}
              {count(plan.runs, "run")}, seed {plan.seed}
            </dd>
            <dt>isolation</dt>
            <dd>{visible([plan.isolation, plan.network && "network " + plan.network].filter(Boolean).join(", ") || "none")}</dd>
          </>
        )}
        {plan?.judge && (
          <>
            <dt>judge</dt>
            <dd>{visible(plan.judge)}</dd>
          </>
        )}
        {repeat && (
          <>
            <dt>repeat it</dt>
            <dd>
              <code>{visible(repeat)}</code> <Copy text={repeat} label="copy" />
            </dd>
          </>
        )}
      </dl>
      <section>
        <h2>Arms</h2>
        <Scroll>
          <table>
            <thead>
              <tr>
                <th scope="col">arm</th>
                <th scope="col">agent</th>
                <th scope="col">model</th>
                <th scope="col">configuration</th>
              </tr>
            </thead>
            <tbody>
              {groups.map((g, i) => (
                <tr key={armOf(g)}>
                  <td class={toneOf(i)}>
                    <Name text={armOf(g)} max={24} />
                  </td>
                  <td>{visible([g.provenance.agent, g.provenance.agentVersion].filter(Boolean).join(" "))}</td>
                  <td>{visible(g.provenance.model ?? "")}</td>
                  <td>
                    <code title={g.provenance.armHash}>{g.provenance.armHash.replace("sha256:", "").slice(0, 12)}</code> <Copy text={g.provenance.armHash} label="copy" />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      </section>
    </>
  );
}
