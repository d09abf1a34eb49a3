// What more runs would cost: the numbers are those of fit-benchmark plan.
import type { JSX } from "preact";
import { useApi, url } from "../../api";
import { count, money, visible, whole } from "../../format";
import { place, setQuery } from "../../router";
import { Empty, Problem, Warnings } from "../../ui";

interface Plan {
  effect: number;
  design: { power: number; alpha: number };
  pilot: { tasks: number; runs: number; costPerRun: number | null } | null;
  tasksNeeded: number;
  costUsd: number | null;
  cheapest: { tasks: number; runs: number; cost: number; mde: number; power: number } | null;
  warnings?: string[];
}

const effects = ["0.05", "0.1", "0.15", "0.2", "0.3"];
const runsEach = ["1", "2", "3", "5", "10"];

export function PlanMore(props: { id: string; dir: string }): JSX.Element {
  const effect = place.value.query.get("effect") ?? "0.1";
  const runs = place.value.query.get("runs") ?? "3";
  const { data, failure } = useApi<Plan>(url(`experiments/${encodeURIComponent(props.id)}/plan`, [["effect", effect], ["runs", runs]]));
  return (
    <div class="plan">
      <p class="row">
        <label>
          To detect a difference of{" "}
          <select value={effect} onChange={(e) => setQuery({ effect: e.currentTarget.value })}>
            {effects.map((v) => (
              <option key={v} value={v}>
                {Math.round(100 * Number(v))} percentage points
              </option>
            ))}
          </select>
        </label>
        <label>
          with{" "}
          <select value={runs} onChange={(e) => setQuery({ runs: e.currentTarget.value })}>
            {runsEach.map((v) => (
              <option key={v} value={v}>
                {count(Number(v), "run")}
              </option>
            ))}
          </select>{" "}
          of each task per arm
        </label>
      </p>
      {failure?.status === 409 ? <Empty title={failure.message}>{failure.hint}</Empty> : failure && <Problem message={failure.message}>{failure.hint}</Problem>}
      {!data && !failure && <p class="soft">Computing…</p>}
      {data && (
        <>
          <p class="sentence">
            {count(data.tasksNeeded, "task")}, {money(data.costUsd)}
          </p>
          <p class="soft">
            {Math.round(100 * data.design.power)}% power at a significance level of {data.design.alpha}
          </p>
          {data.cheapest && (
            <p>
              Cheapest: {count(data.cheapest.tasks, "task")} with {count(data.cheapest.runs, "run")} each, {money(data.cheapest.cost)}
            </p>
          )}
          {data.pilot && (
            <p class="soft">
              The pilot is this experiment: {count(data.pilot.tasks, "task")}, {whole(data.pilot.runs)} runs, {money(data.pilot.costPerRun)} a run
            </p>
          )}
          <Warnings list={data.warnings} />
          <p class="soft">
            The same at the terminal: <code>{visible(`fit-benchmark plan ${props.dir} --effect ${effect} --runs ${runs}`)}</code>
          </p>
        </>
      )}
    </div>
  );
}
