// Charts by Observable Plot. Its pictures are SVG: they print, scale, and take colours from the tokens.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import * as Plot from "@observablehq/plot";
import { cutMiddle } from "./format";
import type { Range } from "./ui";

/** Draws a plot again whenever what it depends on changes. */
export function Chart(props: { options: Plot.PlotOptions; label: string; caption?: string; depends: unknown[] }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const host = ref.current;
    if (!host) return;
    const { x } = props.options;
    // The label of the axis stands below its numbers.
    const axis = x?.label ? { marginBottom: 48, x: { labelOffset: 42, ...x } } : {};
    const picture = Plot.plot({ marginLeft: 56, height: 260, width: 520, ...props.options, ...axis });
    // The page's policy refuses styles inside the picture; ours are in base.css.
    for (const style of picture.querySelectorAll("style")) style.remove();
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", props.label);
    // The picture is one image to a screen reader; its parts carry labels of their own otherwise.
    for (const part of picture.querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
    host.replaceChildren(picture);
  }, props.depends);
  return (
    <figure class="chart">
      <div ref={ref} />
      {props.caption && <figcaption>{props.caption}</figcaption>}
    </figure>
  );
}

export const hues = ["var(--arm-a)", "var(--arm-b)", "var(--soft)"];

export function hue(arm: number): string {
  return hues[Math.min(arm, hues.length - 1)] as string;
}

export interface CostPoint {
  arm: string;
  index: number;
  rate: Range;
  cost: number;
}

/** Where the name of an arm stands: beside its dot, or a line further to the middle for each arm before it that is close. */
function labelHeight(p: CostPoint, list: CostPoint[]): number {
  const most = Math.max(...list.map((q) => q.cost));
  const close = (q: CostPoint): boolean => q.index < p.index && Math.abs(q.rate.est - p.rate.est) < 0.065 && Math.abs(q.cost - p.cost) < most / 4;
  const line = 6.5 * list.filter(close).length;
  return 100 * p.rate.est + (p.rate.est < 0.5 ? line : -line);
}

/** Cost against quality: one dot per arm with whiskers where limits are known. */
export function costAgainstQuality(list: CostPoint[]): Plot.PlotOptions {
  return {
    marginTop: 28,
    marginRight: Math.min(160, 24 + 7 * Math.max(...list.map((p) => p.arm.length))),
    x: { label: "cost of a run, dollars →", domain: [0, Math.max(...list.map((p) => p.cost)) * 1.25 || 1], ticks: 5 },
    y: { label: "↑ pass rate, %", domain: [0, 100], ticks: 5, grid: true },
    marks: [
      Plot.ruleY([0], { stroke: "var(--strong-line)" }),
      Plot.ruleX([0], { stroke: "var(--strong-line)" }),
      Plot.ruleX(list, {
        x: "cost",
        y1: (p: CostPoint) => 100 * (p.rate.lo ?? p.rate.est),
        y2: (p: CostPoint) => 100 * (p.rate.hi ?? p.rate.est),
        stroke: (p: CostPoint) => hue(p.index),
        strokeWidth: 1.5,
        marker: "tick",
      }),
      Plot.dot(list, {
        x: "cost",
        y: (p: CostPoint) => 100 * p.rate.est,
        r: 5,
        fill: (p: CostPoint) => hue(p.index),
        symbol: (p: CostPoint) => (p.index === 0 ? "circle" : p.index === 1 ? "square" : "triangle"),
      }),
      Plot.text(list, {
        x: "cost",
        y: (p: CostPoint) => labelHeight(p, list),
        text: (p: CostPoint) => cutMiddle(p.arm, 20),
        dx: 10,
        textAnchor: "start",
        fill: (p: CostPoint) => hue(p.index),
      }),
    ],
    color: { type: "identity" },
    symbol: { type: "identity" },
  };
}

export interface Measured {
  arm: string;
  value: number;
  outcome: string;
}

const symbols: Record<string, Plot.SymbolType> = { pass: "circle", fail: "times", error: "diamond2" };
const many = 600;

/** The median of an arm; null where it has none yet. */
export interface Median {
  arm: string;
  value: number | null;
}

function known(medians: Median[]): Median[] {
  return medians.filter((m) => m.value !== null);
}

/** One mark per run, and a line at the median: how a quantity is spread in each arm. */
export function spread(list: Measured[], medians: Median[], label: string): Plot.PlotOptions {
  const stroke = (m: Measured): string => `var(--${m.outcome})`;
  const each =
    list.length > many
      ? Plot.tickX(list, { x: "value", fy: "arm", stroke, strokeOpacity: 0.35 })
      : Plot.dot(
          list,
          Plot.dodgeY({ x: "value", fy: "arm", anchor: "middle", r: 3.5, symbol: (m: Measured) => symbols[m.outcome] ?? "circle", stroke }),
        );
  return {
    height: 72 + 72 * medians.length,
    marginLeft: 112,
    marginRight: 24,
    x: { label: label + " →", domain: [0, Math.max(1e-9, ...list.map((m) => m.value)) * 1.05], ticks: 5, grid: true },
    fy: { label: null, domain: medians.map((m) => m.arm), tickFormat: (name: string) => cutMiddle(name, 14) },
    marks: [
      Plot.ruleX([0], { stroke: "var(--strong-line)" }),
      Plot.ruleX(known(medians), { x: "value", fy: "arm", stroke: "var(--ink)", strokeWidth: 1.5, strokeDasharray: "4 3" }),
      each,
    ],
    color: { type: "identity" },
    symbol: { type: "identity" },
  };
}

/** How many runs of each arm took how many turns, as bars from zero. */
export function turnCounts(list: Measured[], medians: Median[]): Plot.PlotOptions {
  const arms = medians.map((m) => m.arm);
  const most = Math.max(1, ...list.map((m) => m.value));
  const step = Math.max(1, Math.ceil(most / 40));
  const counts = new Map<string, { arm: string; from: number; runs: number }>();
  for (const { arm, value } of list) {
    const from = Math.floor(value / step) * step;
    const key = from + arm;
    counts.set(key, { arm, from, runs: (counts.get(key)?.runs ?? 0) + 1 });
  }
  return {
    height: 72 + 72 * arms.length,
    marginLeft: 112,
    marginRight: 24,
    x: { label: "turns of the model →", domain: [-0.5, most + step - 0.5], ticks: [0, ...wholeTicks(most)], tickFormat: "d" },
    y: { label: null, ticks: 2, tickFormat: "d", inset: 6, insetBottom: 0 },
    fy: { label: null, domain: arms, tickFormat: (name: string) => cutMiddle(name, 14) },
    marks: [
      Plot.rectY([...counts.values()], {
        x1: (c: { from: number }) => c.from - 0.4, // a bar stands over the numbers that it counts
        x2: (c: { from: number }) => c.from + step - 0.6,
        y: "runs",
        fy: "arm",
        fill: (c: { arm: string }) => hue(arms.indexOf(c.arm)),
      }),
      Plot.ruleY([0], { stroke: "var(--strong-line)" }),
    ],
    color: { type: "identity" },
  };
}

export interface TurnTokens {
  turn: number;
  kind: string;
  tokens: number;
}

/** Tokens of each turn as stacked bars from zero. */
export function tokensPerTurn(list: TurnTokens[], kinds: string[]): Plot.PlotOptions {
  const range = ["var(--arm-a)", "var(--running)", "var(--waiting)", "var(--arm-b)"];
  return {
    height: 196,
    width: 640,
    marginTop: 24,
    x: { label: "turn →", tickFormat: "d", ticks: wholeTicks(Math.max(1, ...list.map((t) => t.turn))) },
    y: { label: "↑ tokens", grid: true, ticks: 4, tickFormat: "~s" },
    color: { domain: kinds, range, legend: false },
    marks: [
      Plot.rectY(list, {
        x1: (t: TurnTokens) => t.turn - 0.4,
        x2: (t: TurnTokens) => t.turn + 0.4,
        y: "tokens",
        fill: "kind",
        order: kinds,
      }),
      Plot.ruleY([0], { stroke: "var(--strong-line)" }),
    ],
  };
}

function wholeTicks(last: number): number[] {
  const step = Math.ceil(last / 10);
  return Array.from({ length: Math.floor(last / step) }, (_, i) => (i + 1) * step);
}

export interface Arrow {
  at: number;
  from: string;
  to: string;
  kind: string;
  open: boolean;
}

/** Who asked whom: participants as columns, messages as arrows from top to bottom. */
export function sequence(list: Arrow[], lanes: string[]): Plot.PlotOptions {
  return {
    width: Math.max(360, 140 * lanes.length),
    height: 56 + 22 * list.length,
    marginTop: 32,
    marginLeft: 48,
    marginRight: 48,
    x: { type: "point", domain: lanes, axis: "top", label: null, tickSize: 0, tickFormat: (name: string) => cutMiddle(name, 16) },
    y: { domain: [list.length, -0.5], axis: null },
    marks: [
      Plot.ruleX(lanes, { stroke: "var(--line)" }),
      arrows(list.filter((a) => !a.open)),
      arrows(list.filter((a) => a.open), "4 3"),
      Plot.dot(list, { x: "from", y: "at", r: 2.5, fill: toneOfArrow }),
    ],
    color: { type: "identity" },
  };
}

function toneOfArrow(a: Arrow): string {
  return a.kind === "answer" ? "var(--arm-b)" : "var(--arm-a)";
}

function arrows(list: Arrow[], strokeDasharray?: string): Plot.Markish {
  return Plot.arrow(list, { x1: "from", x2: "to", y1: "at", y2: "at", headLength: 8, stroke: toneOfArrow, strokeWidth: 1.5, strokeDasharray });
}
