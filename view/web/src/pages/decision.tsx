// The decision: what is claimed, how sure, at what price.
import type { JSX } from "preact";
import { count, factor, money, percent, visible } from "../format";
import type { ExperimentDetail, Factor, Group } from "../types";
import { Name, rateLabel, Warnings, Whisker } from "../ui";
import { toneOf } from "./experiments";

/** Splits "Improved: the pass rate … (95 % interval …)." into word, sentence and facts. */
export function splitSentence(sentence: string): { word: string; rest: string; facts: string } {
  const found = /^([^:]{1,40}): (.*?)(?: \((.*)\))?\.?$/s.exec(sentence);
  if (!found) return { word: "", rest: sentence, facts: "" };
  return { word: found[1] as string, rest: found[2] as string, facts: found[3] ?? "" };
}

export function Decision(props: { detail: ExperimentDetail }): JSX.Element {
  const { detail } = props;
  const groups = detail.report?.groups ?? [];
  return (
    <div class="decision">
      <div class="claim">
        <Claim detail={detail} groups={groups} />
        <Price detail={detail} />
        <Conditions detail={detail} groups={groups} />
        <Warnings list={[...(detail.comparison?.decision.warnings ?? []), ...(detail.comparison?.warnings ?? [])]} />
      </div>
      <div class="rates" role="group" aria-label="Pass rates with their 95 % intervals">
        {groups.map((g, i) => (
          <div key={g.name + i} class="rate">
            <span class={toneOf(i)}>
              <Name text={g.provenance.arm || g.name} max={18} />
            </span>
            <span class="num">{g.passRate ? percent(g.passRate.est) : "–"}</span>
            <Whisker value={g.passRate} from={0} to={1} width={220} tone={toneOf(i)} label={rateLabel(g.name, g.passRate)} />
            <span class="soft">
              {g.totals.passed} of {count(g.totals.runs, "run")}
            </span>
          </div>
        ))}
      </div>
    </div>
  );
}

function Claim(props: { detail: ExperimentDetail; groups: Group[] }): JSX.Element {
  const { detail, groups } = props;
  const sentence = detail.comparison?.decision.sentence ?? detail.experiment.sentence;
  if (!sentence) {
    const [one] = groups;
    const text =
      groups.length === 1 && one?.passRate
        ? `${one.provenance.arm || one.name} passes ${percent(one.passRate.est)} of its runs.`
        : `${count(groups.length, "arm")}, nothing compared.`;
    return <h1 class="sentence">{visible(text)}</h1>;
  }
  const { word, rest, facts } = splitSentence(sentence);
  const claim = detail.comparison?.decision.claim ?? detail.experiment.claim;
  const tone = claim === "improved" ? "pass-text" : claim === "regressed" ? "fail-text" : "";
  return (
    <>
      <h1 class="sentence">
        {word && <span class={tone}>{visible(word)}. </span>}
        {visible(word ? rest.charAt(0).toUpperCase() + rest.slice(1) : rest)}
        {word ? "." : ""}
      </h1>
      {facts && <p>{visible(facts.split(", ").join(" · "))}</p>}
    </>
  );
}

function Price(props: { detail: ExperimentDetail }): JSX.Element | null {
  const c = props.detail.comparison;
  if (!c) return null;
  const ratios = [ratio("cost", c.cost?.all), ratio("time", c.time?.all), ratio("turns", c.turns?.all)].filter(Boolean);
  const found = c.decision.mde > 0 ? `an experiment of this size finds ${(100 * c.decision.mde).toFixed(1)} points` : "";
  return (
    <>
      {ratios.length > 0 && <p>{ratios.join(" · ")}</p>}
      <p class="soft">{[`${money(c.costA)} and ${money(c.costB)} spent`, found].filter(Boolean).join(" · ")}</p>
    </>
  );
}

function ratio(what: string, f: Factor | undefined): string {
  if (!f) return "";
  return `${what} ${factor(f.est)}` + (f.lo !== null && f.hi !== null ? ` [${f.lo.toFixed(2)}, ${f.hi.toFixed(2)}]` : "");
}

function Conditions(props: { detail: ExperimentDetail; groups: Group[] }): JSX.Element | null {
  const { groups, detail } = props;
  const missing = groups.reduce((n, g) => n + g.totals.missing, 0);
  const isolation = detail.plan?.isolation || groups[0]?.provenance.isolation;
  const network = detail.plan?.network || groups[0]?.provenance.network;
  const list = [
    missing ? `${count(missing, "run")} missing` : "",
    isolation ? `isolated by ${isolation}` : "",
    network ? `network: ${network}` : "",
  ].filter(Boolean);
  return list.length ? <p class="soft">{visible(list.join(" · "))}</p> : null;
}
