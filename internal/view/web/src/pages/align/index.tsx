// Two traces side by side, with their steps aligned.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useApi, url } from "../../api";
import { count, cutMiddle, visible, whole } from "../../format";
import { Bar } from "../../frame";
import { useKeys } from "../../keys";
import { go, href } from "../../router";
import type { Action, Aligned } from "../../types";
import { Empty, Link, Page, Problem, Reading, Scroll } from "../../ui";

const firstSteps = 500;
const words = { match: "the same", change: "differs", "only-a": "left only", "only-b": "right only" };

export function SideBySidePage(props: { a: string; b: string }): JSX.Element {
  const { data, failure } = useApi<Aligned>(props.a && props.b ? url("trace/align", [["a", props.a], ["b", props.b]]) : null);
  return (
    <>
      <Bar crumbs={[{ text: "side by side" }]}>
        <Link to={["align", props.b, props.a]}>swap sides</Link>
      </Bar>
      <Page title="Side by side" wide>
        {(!props.a || !props.b) && <Empty title="Two traces are needed.">Open one from the page of its cell, and choose the other there.</Empty>}
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {props.a && props.b && !data && !failure && <Reading />}
        {data && <Steps a={props.a} b={props.b} data={data} />}
      </Page>
    </>
  );
}

function Steps(props: { a: string; b: string; data: Aligned }): JSX.Element {
  const { alignment } = props.data;
  const steps = alignment.steps ?? [];
  const [all, setAll] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const shown = all ? steps : steps.slice(0, firstSteps);
  const move = (n: number): void => {
    const next = Math.min(Math.max(n, 0), shown.length - 1);
    setChosen(next);
    document.getElementById("step" + next)?.scrollIntoView({ block: "nearest" });
  };
  const different = (from: number): number => shown.findIndex((s, i) => i > from && s.op !== "match");
  const open = (): void => {
    const step = shown[chosen];
    const [trace, entry] = step?.a ? [props.a, entryOf(step.a, alignment.a.actions, props.data.entriesA)] : [props.b, entryOf(step?.b, alignment.b.actions, props.data.entriesB)];
    if (step) go(href(["trace", trace], { at: String(entry ?? 0) }));
  };
  useKeys(
    [
      { keys: "j", does: "next step", run: () => move(chosen + 1) },
      { keys: "k", does: "previous step", run: () => move(chosen - 1) },
      { keys: "e", does: "next difference", run: () => move(different(chosen) >= 0 ? different(chosen) : different(-1)) },
      { keys: "g g", does: "first step", run: () => move(0) },
      { keys: "G", does: "last step", run: () => move(shown.length - 1) },
      { keys: "Enter", does: "open the trace there", run: open },
    ],
    [shown, chosen],
  );
  return (
    <>
      <h1 class="sentence">
        {alignment.firstDivergence === null ? "The two do the same." : `The two differ from step ${alignment.firstDivergence + 1} on.`}
      </h1>
      <p class="soft">
        {alignment.distance === 1 ? "1 action differs" : `${whole(alignment.distance)} actions differ`} · similarity {alignment.similarity.toFixed(2)} (1 is the same)
      </p>
      <Scroll>
        <table class="aligned">
          <thead>
            <tr>
              <th scope="col" class="num">
                step
              </th>
              <th scope="col">
                <Link to={["trace", props.a]}>{visible(cutMiddle(alignment.a.file, 60))}</Link>
              </th>
              <th scope="col">
                <span class="hidden-text">relation</span>
              </th>
              <th scope="col">
                <Link to={["trace", props.b]}>{visible(cutMiddle(alignment.b.file, 60))}</Link>
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((s, i) => (
              <tr key={i} id={"step" + i} class={`${s.op} ${i === chosen ? "chosen" : ""}`}>
                <td class="num soft">{i + 1}</td>
                <td>
                  <ActionView trace={props.a} action={s.a} entry={entryOf(s.a, alignment.a.actions, props.data.entriesA)} />
                </td>
                <td class="soft nowrap">{words[s.op]}</td>
                <td>
                  <ActionView trace={props.b} action={s.b} entry={entryOf(s.b, alignment.b.actions, props.data.entriesB)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {steps.length === 0 && <Empty title="Neither of the two called a tool." />}
      {shown.length < steps.length && (
        <button type="button" onClick={() => setAll(true)}>
          show {count(steps.length - shown.length, "more step")}
        </button>
      )}
    </>
  );
}

/** The entry of an action: actions are listed beside their entries, in the same order. */
function entryOf(action: Action | null | undefined, actions: Action[], entries: number[] | null): number | undefined {
  if (!action) return undefined;
  const at = actions.findIndex((a) => a.line === action.line && a.kind === action.kind && a.target === action.target);
  return entries?.[at];
}

function ActionView(props: { trace: string; action: Action | null; entry?: number }): JSX.Element | null {
  const { action } = props;
  if (!action) return null;
  return (
    <span class="call">
      <Link to={["trace", props.trace]} query={{ at: props.entry === undefined ? undefined : String(props.entry) }}>
        {visible(action.kind)}
      </Link>
      <code title={visible(action.target)}>{visible(cutMiddle(action.target.replace(/\s+/g, " "), 90))}</code>
      {action.isError && <span class="fail-text">✕ error</span>}
    </span>
  );
}
