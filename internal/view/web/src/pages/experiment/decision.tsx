// The decision: the claim, its confidence interval and the cost.
import type { JSX } from "preact";
import { count, factor, money, percent, points, prose, upper, visible, whole } from "../../format";
import type { ExperimentDetail, Factor, FamilyComparison, Group } from "../../types";
import { Link, Name, rateLabel, Scroll, Warnings, Whisker } from "../../ui";
import { ClaimWord, toneOf } from "../experiments";

export function Decision(props: { detail: ExperimentDetail }): JSX.Element {
  const { detail } = props;
  const groups = detail.report?.groups ?? [];
  return (
    <div class="decision">
      <div class="claim">
        <Claim detail={detail} groups={groups} />
        {detail.firstLines?.map((line) => (
          <p key={line} class="soft">
            {prose(upper(line))}.
          </p>
        ))}
        {detail.experiment.stopped && <p>{prose(upper(detail.experiment.stopped))}.</p>}
        {detail.continue && (
          <p class="soft">
            What to do: <code>{visible(detail.continue)}</code>
          </p>
        )}
        <Causes groups={groups} />
        <Cheats groups={groups} />
        <Price detail={detail} />
        <Conditions detail={detail} groups={groups} />
        <TreatmentLines detail={detail} groups={groups} />
        <p class="soft">What a claim rests on, and what remains: docs/validity.md</p>
        <Warnings list={[...new Set([...(detail.comparison?.decision.warnings ?? []), ...(detail.comparison?.warnings ?? []), ...(detail.family?.warnings ?? [])])]} />
      </div>
      <div class="rates" role="group" aria-label="Pass rates with their 95% confidence intervals">
        {groups.map((g, i) => (
          <div key={g.name + i} class="rate">
            <span class={toneOf(i)}>
              <Name text={g.provenance.arm || g.name} max={18} />
            </span>
            <span class="num">{g.passRate ? percent(g.passRate.est) : "–"}</span>
            <Whisker value={g.passRate} from={0} to={1} width={220} tone={toneOf(i)} label={rateLabel(g.name, g.passRate)} />
            <span class="soft of-runs">
              {whole(g.totals.passed)} of {count(g.totals.runs, "run")}
            </span>
          </div>
        ))}
        <FlowPicture groups={groups} />
      </div>
    </div>
  );
}

/** What became of the planned runs of each arm, as a trial shows it: one bar per step. */
function FlowPicture(props: { groups: Group[] }): JSX.Element | null {
  const arms = props.groups.filter((g) => g.flow && g.flow.planned > 0);
  if (!arms.length) return null;
  return (
    <Scroll>
      <table class="flow" aria-label="What became of the planned runs of each arm">
        <thead>
          <tr>
            <th scope="col">flow</th>
            {flowSteps.map(([name]) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {arms.map((g, i) => (
            <tr key={g.name + i}>
              <th scope="row" class={toneOf(props.groups.indexOf(g))}>
                <Name text={g.provenance.arm || g.name} max={18} />
              </th>
              {flowSteps.map(([name, field]) => {
                const n = g.flow?.[field] ?? 0;
                const why = field === "retried" ? Object.entries(g.flow?.why ?? {}).map(([what, times]) => `${what} ${times}`) : [];
                return (
                  <td key={name} class="num" title={visible(why.join(", "))}>
                    {whole(n)}
                    <meter value={n} max={g.flow?.planned ?? 1} aria-label={visible(`${g.name}: ${n} ${name}`)} />
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

const flowSteps = [
  ["planned", "planned"],
  ["started", "started"],
  ["retried", "retried"],
  ["at a limit", "limited"],
  ["held", "held"],
  ["failed calls", "failedCalls"],
  ["graded", "graded"],
] as const;

function Claim(props: { detail: ExperimentDetail; groups: Group[] }): JSX.Element {
  const { detail, groups } = props;
  const decision = detail.comparison?.decision;
  if (detail.family?.sets) return <Ranking sets={detail.family.sets} />;
  if (!decision) {
    const [one] = groups;
    const text =
      groups.length === 1 && one?.passRate
        ? `${one.provenance.arm || one.name} passes ${percent(one.passRate.est)} of its runs.`
        : `${count(groups.length, "arm")}, nothing compared.`;
    return <h1 class="sentence">{visible(text)}</h1>;
  }
  const { head, text, evidence, rest } = decision.said;
  const tone = decision.claim === "improved" ? "pass-text" : decision.claim === "regressed" ? "fail-text" : "";
  return (
    <>
      <h1 class="sentence">
        <span class={tone}>{visible(head)}. </span>
        {prose(groups.some((g) => text.startsWith(g.name)) ? text : upper(text))}.
      </h1>
      <p>{prose((evidence ?? []).join(" · "))}</p>
      {rest?.map((why) => (
        <p key={why}>{prose(upper(why))}.</p>
      ))}
    </>
  );
}

/** Why runs have no verdict, grouped, with the advice of the terminal. */
function Causes(props: { groups: Group[] }): JSX.Element {
  return (
    <>
      {props.groups.flatMap((g) =>
        (g.causes ?? []).map((c) => (
          <p key={`${g.name}/${c.class}/${c.cause ?? ""}`}>
            {count(c.runs, "run")} of {visible(g.provenance.arm || g.name)} without a verdict ({visible(c.class)}){c.message ? `: ${visible(c.message)}` : "."}
            {c.wayOut && <span class="soft"> What to do: {c.wayOut}.</span>}
          </p>
        )),
      )}
    </>
  );
}

/** For what runs were disqualified, with the advice of the terminal. */
function Cheats(props: { groups: Group[] }): JSX.Element {
  return (
    <>
      {props.groups.flatMap((g) =>
        (g.cheats ?? []).map((c) => (
          <p key={`${g.name}/${c.what}`}>
            <span class="fail-text">{count(c.runs, "run")} disqualified</span>: {visible(g.provenance.arm || g.name)} {c.what}.<span class="soft"> What to do: {c.wayOut}.</span>
          </p>
        )),
      )}
    </>
  );
}

/** More than two arms: the best first, with those that cannot be told apart. */
function Ranking(props: { sets: string[][] }): JSX.Element {
  const [first = [], ...rest] = props.sets.map((set, i) => `Rank ${i + 1}: ${set.join(", ")} (${set.length > 1 ? "no significant difference" : "stands alone"})`);
  return (
    <>
      <h1 class="sentence">{visible(String(first))}</h1>
      {rest.map((text) => (
        <p key={text}>{visible(text)}</p>
      ))}
    </>
  );
}

/** Every comparison of a family, corrected for how many there are. A pair opens in the grid. */
export function Pairs(props: { id: string; family: FamilyComparison }): JSX.Element {
  const { pairs } = props.family;
  return (
    <section>
      <h2>
        Comparisons <span class="aside">{count(pairs.length, "comparison")}; p-values are corrected for their number (Holm), confidence intervals are not</span>
      </h2>
      <Scroll>
        <table class="pairs">
          <thead>
            <tr>
              <th scope="col">comparison</th>
              <th scope="col">claim</th>
              <th scope="col" class="num">difference</th>
              <th scope="col">95% CI</th>
              <th scope="col" class="num">p (Holm)</th>
            </tr>
          </thead>
          <tbody>
            {pairs.map(({ a, b, decision: d }) => (
              <tr key={a + "\n" + b}>
                <td>
                  <Link to={["x", props.id]} query={{ a, b }} title={visible(`${b} against ${a}`)}>
                    <Name text={b} max={24} /> against <Name text={a} max={24} />
                  </Link>
                </td>
                <td>
                  <ClaimWord claim={d.claim} sentence={d.sentence} />
                </td>
                <td class="num">{points(d.effect)}</td>
                <td>
                  <Whisker value={{ est: d.effect, lo: d.lo, hi: d.hi }} from={-1} to={1} width={200} tone="ink" label={visible(`${b} against ${a}: ${points(d.effect)} points, ${points(d.lo)} to ${points(d.hi)}`)} />
                </td>
                <td class="num">{d.pAdj === null || d.pAdj === undefined ? "–" : d.pAdj.toFixed(4)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

function Price(props: { detail: ExperimentDetail }): JSX.Element | null {
  const c = props.detail.comparison;
  if (!c) return null;
  const ratios = [ratio("cost", c.cost?.all), ratio("agent time", c.time?.all), ratio("turns", c.turns?.all)].filter(Boolean);
  const found = detectable(c.decision.mde);
  const both = c.costA === null && c.costB === null ? "costs unknown" : `${money(c.costA)} and ${money(c.costB)} spent`;
  return (
    <>
      {ratios.length > 0 && <p>{ratios.join(" · ")}</p>}
      <p class="soft">{[both, found].filter(Boolean).join(" · ")}</p>
    </>
  );
}

/** Beyond 100 points there is no difference of rates that could be detected. */
function detectable(mde: number): string {
  if (mde > 1) return "the experiment is too small to detect any difference";
  return mde > 0 ? `minimum detectable difference (80% power): ${(100 * mde).toFixed(1)} percentage points` : "";
}

function ratio(what: string, f: Factor | undefined): string {
  if (!f) return "";
  return `${what} ${factor(f.est)}` + (f.lo !== null && f.hi !== null ? ` [${f.lo.toFixed(2)}, ${f.hi.toFixed(2)}]` : "");
}

/** In what the arms differ, and what their models were given of it. */
function TreatmentLines(props: { detail: ExperimentDetail; groups: Group[] }): JSX.Element | null {
  const { comparison: c, family } = props.detail;
  const lines: string[] = [];
  if (c) {
    if (c.differs?.length) lines.push(`${props.groups[1]?.name ?? c.b.arm} differs from ${props.groups[0]?.name ?? c.a.arm} in: ${c.differs.join(", ")}`);
    const vendor = (c.requestDifferences ?? []).filter((d) => d.undeclared);
    if (vendor.length) lines.push("comes with the agent or model: " + vendor.map((d) => d.what).join(", "));
    lines.push(...(c.treatment?.lines ?? []));
  } else if (family) {
    for (const g of props.groups) if (g.differs?.length) lines.push(`${g.name} differs from the baseline in: ${g.differs.join(", ")}`);
    for (const p of family.pairs) for (const r of p.withheld ?? []) lines.push(`no claim about ${p.a} and ${p.b}: ${r.text}`);
    lines.push(...(family.treatment?.lines ?? []));
  } else {
    for (const g of props.groups) lines.push(...(g.treatment?.lines ?? []), ...(g.withheld ?? []).map((r) => "withheld: " + r.text));
  }
  if (!lines.length) return null;
  return (
    <div class="soft">
      {[...new Set(lines)].map((line) => (
        <p key={line}>{prose(line)}</p>
      ))}
    </div>
  );
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
