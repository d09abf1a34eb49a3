// A test of a skill: cases by arms by runs, and one case with what each arm made of it, side by side.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { asFailure, frozen, post, useApi, url, type Failure } from "../../api";
import { Diff } from "../../diff";
import { prose, visible } from "../../format";
import { Bar } from "../../frame";
import { useKeys } from "../../keys";
import { place, setQuery } from "../../router";
import type { CellDetail, ExperimentDetail, SkillCase, SkillRow, SkillRun, SkillTest } from "../../types";
import { Empty, Link, Mark, Name, Page, Problem, Reading, type Outcome } from "../../ui";
import { toneOf } from "../experiments";

export function SkillPage(props: { id: string }): JSX.Element {
  const base = `experiments/${encodeURIComponent(props.id)}`;
  const { data, failure } = useApi<SkillTest>(url(`${base}/skill`));
  const [written, setWritten] = useState<SkillTest | null>(null);
  const name = useApi<ExperimentDetail>(url(base)).data?.experiment.name ?? "experiment";
  const test = written ?? data;
  return (
    <>
      <Bar crumbs={[{ text: name, to: ["x", props.id] }, { text: "skill" }]} />
      <Page title={`${name} skill`} wide>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {!test && !failure && <Reading />}
        {test && <Body id={props.id} test={test} onChange={setWritten} />}
      </Page>
    </>
  );
}

interface Props {
  id: string;
  test: SkillTest;
  onChange: (test: SkillTest) => void;
}

function Body(props: Props): JSX.Element {
  const { test } = props;
  if (!test.cases.length) return <Empty title="No case has been run yet." />;
  return (
    <>
      <div class="outcome">
        <h1 class="sentence">{prose(test.sentence)}</h1>
        {test.facts.map((line) => (
          <p key={line} class="soft">
            {visible(line)}
          </p>
        ))}
        {!frozen && test.cases.some((c) => c.runs.some((r) => r.rows.some((row) => row.pass === null))) && (
          <p>
            <Link to={["labels", props.id]} query={{ dimension: "sentences" }}>
              Decide about sentences, blind
            </Link>
          </p>
        )}
      </div>
      <Cases {...props} />
      <OneCase {...props} />
    </>
  );
}

/** What an assertion says, in the words of the terminal. */
const readings: Record<string, string> = { with: "helps", without: "harms", neither: "never", both: "always" };

function Cases(props: Props): JSX.Element {
  const { cases, arms } = props.test;
  return (
    <section>
      <h2>Cases</h2>
      <div class="scroll">
        <table class="cases">
          <thead>
            <tr>
              <th scope="col">case</th>
              <th scope="col">prompt</th>
              {arms.map((arm, i) => (
                <th key={arm} scope="col" class={toneOf(i)}>
                  <Name text={arm} max={28} />
                </th>
              ))}
              <th scope="col">assertions</th>
            </tr>
          </thead>
          <tbody>
            {cases.map((c) => (
              <tr key={c.id}>
                <td>
                  <Link to={["skill", props.id]} query={{ case: c.id }} current={c.id === place.value.query.get("case")}>
                    <Name text={c.id} max={28} />
                  </Link>
                </td>
                <td>
                  <Name text={c.prompt} max={60} />
                </td>
                {arms.map((arm) => (
                  <td key={arm} class="nowrap">
                    {c.runs.filter((r) => r.arm === arm).map((r) => (
                      <Link key={r.run} to={["skill", props.id]} query={{ case: c.id, run: String(r.run) }} label={visible(`${c.id}, ${arm}, run ${r.run}: ${r.verdict}`)}>
                        <Mark outcome={r.verdict as Outcome} label="" />
                      </Link>
                    ))}
                  </td>
                ))}
                <td>{visible(counted(c))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** How many assertions of a case say what, e.g. "1 helps, 2 always". */
function counted(c: SkillCase): string {
  const words = c.assertions.map((a) => readings[a.reading] ?? a.reading);
  return [...new Set(words)].map((word) => `${words.filter((w) => w === word).length} ${word}`).join(", ");
}

function OneCase(props: Props): JSX.Element {
  const { cases, arms } = props.test;
  const asked = place.value.query.get("case");
  const c = cases.find((one) => one.id === asked) ?? (cases[0] as SkillCase);
  const runs = [...new Set(c.runs.map((r) => r.run))];
  const run = Number(place.value.query.get("run") ?? runs[0] ?? 0);
  const step = (by: number): void => {
    const to = cases[cases.indexOf(c) + by];
    if (to) setQuery({ case: to.id, run: undefined });
  };
  useKeys(
    [
      { keys: "]", does: "next case", run: () => step(1) },
      { keys: "[", does: "previous case", run: () => step(-1) },
    ],
    [c.id, cases.length],
  );
  return (
    <section class="one-case">
      <h2>
        Case <Name text={c.id} max={60} />
      </h2>
      {runs.length > 1 && (
        <div class="tools">
          <select aria-label="Run" value={String(run)} onChange={(e) => setQuery({ case: c.id, run: e.currentTarget.value })}>
            {runs.map((r) => (
              <option key={r} value={String(r)}>
                run {r}
              </option>
            ))}
          </select>
        </div>
      )}
      <p class="written">{visible(c.prompt)}</p>
      {c.expected && <p class="soft written">{visible("expected: " + c.expected)}</p>}
      {c.silent && <p class="soft">The skill should stay unopened.</p>}
      <Feedback key={c.id} {...props} of={c} />
      <div class="columns">
        {arms.map((arm, i) => {
          const one = c.runs.find((r) => r.arm === arm && r.run === run);
          return one ? <Column key={c.id + "\n" + arm} id={props.id} task={c.id} run={one} tone={toneOf(i)} /> : <Empty key={arm} title={visible(arm) + " has no result of this run."} />;
        })}
      </div>
    </section>
  );
}

function Column(props: { id: string; task: string; run: SkillRun; tone: string }): JSX.Element {
  const { run } = props;
  const path = ["experiments", props.id, "cells", props.task, run.arm, String(run.run)].map(encodeURIComponent).join("/");
  const { data, failure } = useApi<CellDetail>(url(path));
  return (
    <div class="column">
      <h3>
        <Mark outcome={run.verdict as Outcome} />{" "}
        <Link to={["x", props.id, props.task, run.arm, run.run]} class={props.tone}>
          <Name text={run.arm} max={28} />
        </Link>
      </h3>
      <table class="evidence">
        <tbody>
          {run.rows.map((row, i) => (
            <Assertion key={i} row={row} />
          ))}
        </tbody>
      </table>
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
      {data?.answer && (
        <pre class="answer" tabIndex={0} aria-label="The agent's last message">
          {visible(data.answer.text)}
        </pre>
      )}
      {data?.diff && <Diff diff={data.diff} citations={data.cited} />}
    </div>
  );
}

function Assertion(props: { row: SkillRow }): JSX.Element {
  const { row } = props;
  const word = row.pass === null ? "nobody decided" : row.pass ? "passed" : "failed";
  return (
    <tr>
      <td class="nowrap">
        <Mark outcome={row.pass === null ? "error" : row.pass ? "pass" : "fail"} label={word} /> <span class="soft">{visible(row.shown || "code")}</span>
      </td>
      <td>
        {visible(row.text)}
        {row.why && <div class="soft">{visible(row.why)}</div>}
        {(row.evidence ?? []).map((line) => (
          <div key={line} class="soft mono">
            {visible(line)}
          </div>
        ))}
      </td>
    </tr>
  );
}

/** What a person says about a case: it is kept in feedback.json. */
function Feedback(props: Props & { of: SkillCase }): JSX.Element | null {
  const said = props.of.feedback ?? "";
  const [text, setText] = useState(said);
  const [failure, setFailure] = useState<Failure | null>(null);
  if (frozen) return said ? <p class="written">{visible("feedback: " + said)}</p> : null;
  async function save(event: Event): Promise<void> {
    event.preventDefault();
    try {
      props.onChange(await post<SkillTest>(url(`experiments/${encodeURIComponent(props.id)}/skill`), { case: props.of.id, text }));
      setFailure(null);
    } catch (e) {
      setFailure(asFailure(e));
    }
  }
  return (
    <form class="note no-print" onSubmit={(e) => void save(e)}>
      <textarea aria-label="Feedback" placeholder="What should be different about this case" rows={2} value={text} onInput={(e) => setText(e.currentTarget.value)} />
      <div class="tools">
        <button type="submit" disabled={text.trim() === said}>
          Save feedback
        </button>
        {said && text.trim() === said && <span class="soft">kept in feedback.json</span>}
      </div>
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
    </form>
  );
}
