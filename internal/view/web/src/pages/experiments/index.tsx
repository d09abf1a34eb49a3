// All experiments below the given directories, and the traces given by themselves.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { frozen, useApi, url } from "../../api";
import { bytes, duration, money, percent, prose, visible, whole } from "../../format";
import { Bar } from "../../frame";
import { useKeys } from "../../keys";
import { useEvents } from "../../live";
import { go, href, place, setQuery } from "../../router";
import type { Experiment, ExperimentList, TraceFile } from "../../types";
import { Empty, Head, Link, Name, Page, Problem, rateLabel, Reading, Scroll, sorted, When, Whisker, type Column } from "../../ui";

const columns: Column<Experiment>[] = [
  { name: "name", head: "experiment", sort: (e) => e.name, show: (e) => <NameOf experiment={e} /> },
  { name: "claim", head: "claim", sort: (e) => e.claim, show: (e) => <Claim experiment={e} /> },
  { name: "rate", head: "pass rate, 95% CI", sort: (e) => e.arms?.at(-1)?.rate?.est, show: (e) => <Rates experiment={e} /> },
  { name: "done", head: "runs", num: true, sort: (e) => e.done, show: (e) => <Progress experiment={e} /> },
  { name: "cost", head: "cost", num: true, sort: (e) => e.costUsd ?? e.knownCostUsd, show: cost },
  { name: "time", head: "time", num: true, sort: (e) => e.elapsedMs, show: (e) => (e.elapsedMs ? duration(e.elapsedMs) : e.done ? "unknown" : "") },
  { name: "updated", head: "changed", num: true, sort: (e) => e.updatedMs, show: (e) => <When ms={e.updatedMs} /> },
];

function cost(e: Experiment): string {
  if (e.costUsd === null && e.knownCostUsd > 0) return "over " + money(e.knownCostUsd);
  return e.done > 0 || e.costUsd ? money(e.costUsd) : "";
}

export function ExperimentsPage(): JSX.Element {
  const { data, failure } = useApi<ExperimentList>(url("experiments"));
  const [changed, setChanged] = useState(new Map<string, Experiment>());
  useEvents({ list: true }, {
    experiment: (e: Experiment) => setChanged((old) => new Map(old).set(e.id, e)),
  });
  return (
    <>
      <Bar crumbs={[]}>{data && <span class="soft">{visible(data.roots.join(" · "))}</span>}</Bar>
      <Page title="Experiments" wide>
        <h1 class="hidden-text">Experiments</h1>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {!data && !failure && <Reading />}
        {data && <List experiments={merge(data.experiments ?? [], changed)} />}
        {data?.traces?.length ? <Traces list={data.traces} /> : null}
        {data && !data.experiments?.length && !data.traces?.length && <Nothing roots={data.roots} />}
      </Page>
    </>
  );
}

function merge(list: Experiment[], changed: Map<string, Experiment>): Experiment[] {
  const known = new Set(list.map((e) => e.id));
  return [...list.map((e) => changed.get(e.id) ?? e), ...[...changed.values()].filter((e) => !known.has(e.id))];
}

function List(props: { experiments: Experiment[] }): JSX.Element | null {
  const filter = place.value.query.get("q") ?? "";
  const order = place.value.query.get("sort") ?? "-updated";
  const [chosen, setChosen] = useState(-1);
  const search = useRef<HTMLInputElement>(null);
  const wanted = props.experiments.filter((e) => matches(e, filter));
  const list = sorted(wanted, columns, order);
  const move = (by: number): void => setChosen((n) => Math.min(Math.max(n + by, 0), list.length - 1));
  useKeys(
    [
      { keys: "/", does: "search", run: () => search.current?.focus() },
      { keys: "j", does: "next experiment", run: () => move(1) },
      { keys: "k", does: "previous experiment", run: () => move(-1) },
      { keys: "g g", does: "first experiment", run: () => setChosen(0) },
      { keys: "G", does: "last experiment", run: () => setChosen(list.length - 1) },
      { keys: "Enter", does: "open it", run: () => list[chosen] && go(href(["x", list[chosen].id])) },
    ],
    [list, chosen],
  );
  useEffect(() => document.querySelector("tr.chosen")?.scrollIntoView({ block: "nearest" }), [chosen]);
  if (!props.experiments.length) return null;
  return (
    <>
      {props.experiments.length > 1 && (
        <div class="tools">
          <input
            ref={search}
            type="search"
            placeholder="Filter by name, claim, model  (/)"
            aria-label="Filter experiments"
            value={filter}
            onInput={(e) => setQuery({ q: e.currentTarget.value })}
          />
          <span class="soft" role="status">
            {list.length === props.experiments.length ? "" : `${list.length} of ${props.experiments.length}`}
          </span>
        </div>
      )}
      <Compare experiments={props.experiments} />
      <Scroll>
        <table class="experiments">
          <Head columns={columns} order={order} onOrder={(sort) => setQuery({ sort })} />
          <tbody>
            {list.map((e, i) => (
              <tr key={e.id} class={i === chosen ? "chosen" : ""}>
                {columns.map((c) => (
                  <td key={c.name} class={c.num ? "num" : ""}>
                    {c.show(e)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {list.length === 0 && <Empty title="No experiment matches the filter." />}
    </>
  );
}

/** The two experiments that are to be compared, in the order in which they were chosen, and which arm of each. */
function chosenSides(): string[] {
  return (place.value.query.get("compare") ?? "").split("|").filter(Boolean);
}

function Choose(props: { experiment: Experiment }): JSX.Element | null {
  const { id, name, arms } = props.experiment;
  const sides = chosenSides();
  const last = arms?.at(-1)?.name;
  const chosen = sides.some((s) => s.startsWith(id + ":"));
  if (frozen || !last) return null;
  const choose = (on: boolean): void => {
    const others = sides.filter((s) => !s.startsWith(id + ":")).slice(-1);
    setQuery({ compare: (on ? [...others, `${id}:${encodeURIComponent(last)}`] : others).join("|") });
  };
  return (
    <label class="choose no-print">
      <input type="checkbox" checked={chosen} onChange={(e) => choose(e.currentTarget.checked)} aria-label={visible(`Compare ${name}`)} />
    </label>
  );
}

function Compare(props: { experiments: Experiment[] }): JSX.Element | null {
  const sides = chosenSides();
  if (!sides.length) return null;
  const arm = (at: number, name: string): void => setQuery({ compare: sides.map((s, i) => (i === at ? `${s.split(":")[0]}:${encodeURIComponent(name)}` : s)).join("|") });
  return (
    <div class="tools compare" role="group" aria-label="Compare two experiments">
      {sides.map((side, i) => {
        const [id, escaped = ""] = side.split(":");
        const e = props.experiments.find((one) => one.id === id);
        if (!e) return null;
        return (
          <span key={id} class="row">
            {i > 0 && <span>with</span>}
            <Name text={e.name} max={24} />
            <select aria-label={visible(`Arm of ${e.name}`)} value={decodeURIComponent(escaped)} onChange={(event) => arm(i, event.currentTarget.value)}>
              {(e.arms ?? []).map((a) => (
                <option key={a.name} value={a.name}>
                  {visible(a.name)}
                </option>
              ))}
            </select>
          </span>
        );
      })}
      {sides.length === 2 ? <Link to={["x", sides.join("|")]}>compare</Link> : <span class="soft">choose the experiment to compare it with</span>}
    </div>
  );
}

function matches(e: Experiment, filter: string): boolean {
  const text = [e.name, e.dir, e.claim, e.family, e.model, e.state, ...(e.arms ?? []).map((a) => a.name)].join(" ").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function NameOf(props: { experiment: Experiment }): JSX.Element {
  const e = props.experiment;
  const about = [e.family, e.model].filter(Boolean).join(" · ");
  return (
    <>
      <Choose experiment={e} />
      <Link to={["x", e.id]} class="strong" title={visible(e.dir)}>
        <Name text={e.name} max={36} />
      </Link>
      {about && (
        <div class="soft">
          <Name text={about} max={48} />
        </div>
      )}
    </>
  );
}

function Claim(props: { experiment: Experiment }): JSX.Element {
  const e = props.experiment;
  if (e.state === "damaged" || e.state === "empty") {
    return (
      <>
        <span class="fail-text">{e.state}</span>
        <div class="soft clamp">{visible(e.problem ?? "")}</div>
      </>
    );
  }
  return (
    <>
      {e.claim ? <ClaimWord claim={e.claim} sentence={e.sentence} /> : <span class="soft">{compared(e.arms?.length ?? 0)}</span>}
      {e.stopped && <div class="soft clamp">{prose(e.stopped)}</div>}
    </>
  );
}

function compared(arms: number): string {
  if (arms > 2) return `${arms} arms`;
  return arms === 1 ? "one arm, nothing compared" : "none yet";
}

export function ClaimWord(props: { claim: string; sentence: string }): JSX.Element {
  const tone = props.claim === "improved" ? "pass-text" : props.claim === "regressed" ? "fail-text" : "";
  return (
    <span class={"claim-word " + tone} title={prose(props.sentence)}>
      {props.claim}
    </span>
  );
}

function Rates(props: { experiment: Experiment }): JSX.Element {
  const arms = props.experiment.arms ?? [];
  return (
    <div class="rates">
      {arms.slice(0, 4).map((a, i) => (
        <div key={a.name} class="rate">
          <Name text={a.name} max={16} />
          <span class="num">{a.rate ? percent(a.rate.est) : "–"}</span>
          <Whisker value={a.rate} from={0} to={1} width={160} tone={toneOf(i)} label={rateLabel(a.name, a.rate)} />
        </div>
      ))}
      {arms.length > 4 && <div class="soft">and {arms.length - 4} more</div>}
    </div>
  );
}

export function toneOf(arm: number): string {
  return arm === 0 ? "arm-a" : arm === 1 ? "arm-b" : "soft";
}

function Progress(props: { experiment: Experiment }): JSX.Element {
  const e = props.experiment;
  const missing = e.planned - e.done;
  return (
    <>
      {e.planned ? `${whole(e.done)} of ${whole(e.planned)}` : whole(e.done)}
      <div class="soft">
        {e.state === "running" ? `● live, ${e.inFlight} running` : missing > 0 ? "incomplete" : ""}
        {e.errors > 0 ? ` ${whole(e.errors)} error${e.errors === 1 ? "" : "s"}` : ""}
      </div>
    </>
  );
}

function Traces(props: { list: TraceFile[] }): JSX.Element {
  return (
    <section>
      <h2>Traces</h2>
      <table>
        <tbody>
          {props.list.map((t) => (
            <tr key={t.id}>
              <td>
                <Link to={["trace", t.id]} title={visible(t.path)}>
                  <Name text={t.path} max={80} />
                </Link>
              </td>
              <td class="num">{bytes(t.bytes)}</td>
              <td>
                <When ms={t.modifiedMs} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Nothing(props: { roots: string[] }): JSX.Element {
  return (
    <Empty title={`No run directory in ${visible(props.roots.join(", ")) || "the given directories"} yet.`}>
      <p>Every experiment has a directory, and each appears here as soon as its first cell starts. One that needs no key and no network:</p>
      <p>
        <code>{frozen ? "fit demo" : "fit demo --view"}</code>
      </p>
      <p>One of your own:</p>
      <p>
        <code>fit-benchmark run --family DIR --output RUNS --arm before=agent:codex --arm after=agent:codex,skills:DIR</code>
      </p>
    </Empty>
  );
}
