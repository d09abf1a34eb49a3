// The grid task × arm × run, with the difference of every task beside it.
import type { JSX, RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { frozen } from "../../api";
import { count, cutMiddle, duration, money, points, short, visible } from "../../format";
import { useKeys } from "../../keys";
import { go, href, place, setQuery } from "../../router";
import { useWindowRows } from "../../rows";
import type { Cell, Cells, Comparison, Forest, Group } from "../../types";
import { cellPath, Empty, Head, Link, Mark, Name, outcomeWord, Scroll, sorted, Whisker, type Column, type Range } from "../../ui";
import { toneOf } from "../experiments";
import { Tags } from "../../notes";

interface Row {
  task: string;
  arms: Cell[][];
  difference: Range | null;
  rates: (number | null)[];
  /** Undefined until a run has ended; null is unknown. */
  cost?: number | null;
  turns?: number;
  time?: number;
  tokens?: number;
}

interface GridProps {
  id: string;
  cells: Cells;
  forest?: Forest;
  comparison: Comparison | null;
  groups: Group[];
}

const longestName = 32;

/** How many marks of an arm stand in one line, how wide one is, and how high a row with so many runs is. */
const marksInLine = 12;
const markWidth = 26;

function heightOf(runs: number): number {
  return 8 + 24 * Math.max(1, Math.ceil(runs / marksInLine));
}

const states = ["", "fail", "error", "running", "pass"];

function rowsOf(cells: Cells, forest: Forest | undefined, comparison: Comparison | null, groups: Group[]): Row[] {
  const place = new Map(cells.arms.map((name, i) => [name, i]));
  const rates = cells.arms.map((arm) => new Map(groupOf(groups, arm)?.tasks.map((t) => [t.taskId, t.rate?.est ?? null])));
  const limits = new Map((forest?.tasks ?? []).map((t) => [t.taskId, t]));
  const deltas = new Map((comparison?.tasks ?? []).map((t) => [t.taskId, t]));
  const rows = new Map<string, Row>();
  for (const cell of cells.cells) {
    let row = rows.get(cell.task);
    if (!row) {
      const delta = deltas.get(cell.task);
      const limit = limits.get(cell.task);
      const known = limit && limit.est !== null ? { ...limit, est: limit.est } : (delta && delta.nA > 0 && delta.nB > 0 ? { est: delta.delta, lo: null, hi: null } : null);
      row = {
        task: cell.task,
        arms: cells.arms.map(() => []),
        difference: known,
        rates: rates.map((r) => r.get(cell.task) ?? null),
      };
      rows.set(cell.task, row);
    }
    row.arms[place.get(cell.arm) ?? 0]?.push(cell);
    if (!began(cell)) continue;
    row.cost = row.cost === null || cell.costUsd === null ? null : (row.cost ?? 0) + cell.costUsd;
    row.turns = (row.turns ?? 0) + cell.turns;
    row.time = (row.time ?? 0) + cell.durationMs;
    row.tokens = (row.tokens ?? 0) + cell.tokens;
  }
  return [...rows.values()];
}

/** The report has no group of an arm that has not begun, so that groups are found by name. */
function groupOf(groups: Group[], arm: string): Group | undefined {
  return groups.find((g) => (g.provenance.arm || g.name) === arm);
}

/** Reports whether an attempt has numbers: what ended before its agent began has cost nothing and took no time. */
export function began(cell: Cell): boolean {
  return !cell.notStarted && cell.state !== "waiting" && cell.state !== "running" && (cell.turns > 0 || cell.durationMs > 0 || (cell.costUsd ?? 0) > 0);
}

function columnsOf(props: GridProps, forest: boolean): Column<Row>[] {
  const arms: Column<Row>[] = props.cells.arms.map((name, i) => ({
    name: "arm" + i,
    head: <Name text={name} max={Math.max(14, marksInLine * 2 * Math.min(1, props.cells.runs.length / 6))} />,
    sort: (r) => r.rates[i],
    show: (r) => <Marks id={props.id} cells={r.arms[i] ?? []} />,
  }));
  const difference: Column<Row>[] = [
    { name: "difference", head: "difference", num: true, sort: (r) => r.difference?.est, show: (r) => (r.difference ? points(r.difference.est, 0) : "–") },
    { name: "interval", head: <Scale />, show: (r) => <Difference name={r.task} value={r.difference} /> },
  ];
  return [
    { name: "task", head: "task", sort: (r) => r.task, show: (r) => <Name text={r.task} max={longestName} /> },
    ...(forest && arms.length > 2 ? difference : []), // what the page is about stays on the screen
    ...arms,
    ...(forest && arms.length <= 2 ? difference : []),
    { name: "cost", head: "cost", num: true, sort: (r) => r.cost, show: (r) => (r.cost === undefined ? "–" : money(r.cost)) },
    { name: "turns", head: "turns", num: true, sort: (r) => r.turns, show: (r) => r.turns ?? "–" },
    { name: "time", head: "time with grading", num: true, sort: (r) => r.time, show: (r) => (r.time === undefined ? "–" : duration(r.time)) },
    ...more,
  ];
}

/** The columns that are shown when they are asked for. */
const more: Column<Row>[] = [
  { name: "tokens", head: "tokens", num: true, sort: (r) => r.tokens, show: (r) => (r.tokens === undefined ? "–" : short(r.tokens)) },
  { name: "errors", head: "errors", num: true, sort: (r) => countOf(r, (c) => c.state === "error" || c.state === "retry"), show: (r) => countOf(r, (c) => c.state === "error" || c.state === "retry") },
  { name: "retries", head: "retries", num: true, sort: (r) => countOf(r, (c) => c.attempts > 1), show: (r) => countOf(r, (c) => c.attempts > 1) },
  { name: "why", head: "first reason", sort: (r) => whyOf(r) || null, show: (r) => <Name text={whyOf(r)} max={60} /> },
  { name: "tags", head: "tags", sort: (r) => tagsOf(r).join(" ") || null, show: (r) => <Tags list={tagsOf(r)} /> },
];

function countOf(row: Row, holds: (cell: Cell) => boolean): number {
  return row.arms.flat().filter(holds).length;
}

function whyOf(row: Row): string {
  return row.arms.flat().find((c) => c.why)?.why ?? "";
}

function tagsOf(row: Row): string[] {
  return [...new Set(row.arms.flat().flatMap((c) => c.tags ?? []))];
}

/** The columns that the address names; without it, all but those on demand. The task is always there. */
function shownOf(columns: Column<Row>[], tagged: boolean): Column<Row>[] {
  const named = place.value.query.get("columns")?.split(",");
  return columns.filter((c) => c.name === "task" || (named ? named.includes(c.name) : !more.includes(c) || (c.name === "tags" && tagged)));
}

function Choice(props: { columns: Column<Row>[]; shown: Column<Row>[]; arms: string[] }): JSX.Element {
  const choose = (name: string, on: boolean): void => {
    const names = props.columns.filter((c) => (c.name === name ? on : props.shown.includes(c))).map((c) => c.name);
    setQuery({ columns: names.join(",") });
  };
  return (
    <details class="menu no-print">
      <summary>columns</summary>
      <div>
        {props.columns.slice(1).map((c) => (
          <label key={c.name}>
            <input type="checkbox" checked={props.shown.includes(c)} onChange={(e) => choose(c.name, e.currentTarget.checked)} /> {c.name === "interval" ? "95% CI" : c.name.startsWith("arm") ? visible(cutMiddle(props.arms[Number(c.name.slice(3))] ?? "", 32)) : c.head}
          </label>
        ))}
        <button type="button" class="plain" onClick={() => setQuery({ columns: undefined })}>
          as at first
        </button>
      </div>
    </details>
  );
}

export function Grid(props: GridProps): JSX.Element {
  const { cells, forest, comparison, groups } = props;
  const query = place.value.query;
  const text = query.get("q") ?? "";
  const state = query.get("state") ?? "";
  const order = query.get("sort") ?? "task";
  const compared = cells.arms.length > 1 && (comparison !== null || forest !== undefined);
  const all = useMemo(() => rowsOf(cells, forest, comparison, groups), [cells, forest, comparison, groups]);
  const every = useMemo(() => columnsOf(props, compared), [cells, forest, comparison, groups]);
  const columns = shownOf(every, all.some((r) => tagsOf(r).length > 0));
  const list = sorted(all.filter((r) => wanted(r, text, state)), columns, order);
  const table = useRef<HTMLTableElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const [chosen, setChosen] = useState(-1);
  const rowHeight = heightOf(cells.runs.length);
  const rows = useWindowRows(list.length, rowHeight, table);
  useStickyHead(table);
  const choose = (n: number): void => {
    const next = Math.min(Math.max(n, 0), list.length - 1);
    setChosen(next);
    rows.scrollToIndex(next, { align: "auto" });
  };
  useKeys(gridKeys(props.id, list, chosen, choose, () => search.current?.focus()), [list, chosen]);
  useEffect(() => setChosen(-1), [text, state, order]);
  const visibleRows = frozen ? list.map((_, index) => index) : rows.getVirtualItems().map((v) => v.index);
  const [first = 0, last = -1] = [visibleRows[0], visibleRows.at(-1)];
  return (
    <>
      <div class="tools no-print">
        <input
          ref={search}
          type="search"
          placeholder="Filter by task or reason  (/)"
          aria-label="Filter tasks"
          value={text}
          onInput={(e) => setQuery({ q: e.currentTarget.value })}
        />
        <select aria-label="Filter by outcome" value={state} onChange={(e) => setQuery({ state: e.currentTarget.value })}>
          {states.map((s) => (
            <option key={s} value={s}>
              {s === "" ? "any outcome" : "with " + outcomeWord(s as Cell["state"])}
            </option>
          ))}
        </select>
        <span class="soft" role="status">
          {list.length === all.length ? "" : `${list.length} of ${all.length} tasks`}
        </span>
        {!frozen && <Choice columns={every} shown={columns} arms={cells.arms} />}
        {cells.arms.length > 2 && forest && !frozen && <Pair arms={cells.arms} forest={forest} />}
        <Legend />
      </div>
      <Scroll>
        <table class="grid" ref={table} aria-rowcount={list.length + 1}>
          <colgroup>
            {widthsOf(columns, all, cells).map((width, i) => (
              <col key={i} style={{ width: `${width}px` }} />
            ))}
          </colgroup>
          <Head columns={columns} order={order} onOrder={(sort) => setQuery({ sort })} />
          <tbody>
            {first > 0 && <tr class="spacer" style={{ height: `${first * rowHeight}px` }} />}
            {visibleRows.map((i) => {
              const row = list[i] as Row;
              return (
                <tr key={row.task} class={i === chosen ? "chosen" : ""} style={{ height: `${rowHeight}px` }} aria-rowindex={i + 2}>
                  {columns.map((c) => (
                    <td key={c.name} class={(c.num ? "num " : "") + c.name}>
                      {c.show(row)}
                    </td>
                  ))}
                </tr>
              );
            })}
            {last >= 0 && last < list.length - 1 && <tr class="spacer" style={{ height: `${(list.length - 1 - last) * rowHeight}px` }} />}
          </tbody>
          {compared && <Overall arms={cells.arms} columns={columns} forest={forest} comparison={comparison} groups={groups} />}
        </table>
      </Scroll>
      {list.length === 0 && <Empty title="No task matches the filter." />}
    </>
  );
}

/** The head of a long table stays on the screen. It is moved by script: the table scrolls sideways in an element of its own. */
function useStickyHead(table: RefObject<HTMLTableElement | null>): void {
  useEffect(() => {
    if (frozen) return;
    const follow = (): void => {
      const { tHead, tFoot } = table.current ?? {};
      if (!table.current || !tHead) return;
      const box = table.current.getBoundingClientRect();
      const by = Math.min(-box.top, box.height - tHead.offsetHeight - (tFoot?.offsetHeight ?? 0));
      tHead.style.transform = by > 0 ? `translateY(${by}px)` : "";
    };
    addEventListener("scroll", follow, { passive: true });
    return () => removeEventListener("scroll", follow);
  }, []);
}

/** The least widths of the columns, from all rows and not from those that are drawn, so that scrolling moves none. */
function widthsOf(columns: Column<Row>[], all: Row[], cells: Cells): number[] {
  const letter = 8.5;
  const gap = 24;
  const longest = (texts: string[]): number => gap + letter * texts.reduce((n, text) => Math.max(n, text.length), 4);
  return columns.map((c) => {
    if (c.name === "task") return gap + letter * Math.min(longestName, all.reduce((n, r) => Math.max(n, r.task.length), 8));
    if (c.name === "interval") return gap + scaleWidth;
    if (c.name.startsWith("arm")) return gap + markWidth * Math.min(cells.runs.length, marksInLine);
    if (c.name === "why") return gap + letter * Math.min(60, all.reduce((n, r) => Math.max(n, whyOf(r).length), 12));
    if (c.name === "tags") return gap + 24 + letter * all.reduce((n, r) => Math.max(n, tagsOf(r).join("    ").length), 4);
    return longest([String(c.head), ...all.map((r) => String(c.show(r)))]);
  });
}

/** Which two of several arms the differences are between. */
function Pair(props: { arms: string[]; forest: Forest }): JSX.Element {
  const { a, b } = props.forest;
  const choice = (name: "a" | "b", label: string): JSX.Element => (
    <select aria-label={label} value={props.forest[name]} onChange={(e) => setQuery({ a, b, [name]: e.currentTarget.value })}>
      {props.arms.map((arm) => (
        <option key={arm} value={arm} disabled={arm === (name === "a" ? b : a)}>
          {visible(cutMiddle(arm, 24))}
        </option>
      ))}
    </select>
  );
  return (
    <span class="pair-choice">
      {choice("b", "Difference of")}
      <span>against</span>
      {choice("a", "Difference from")}
    </span>
  );
}

function wanted(row: Row, text: string, state: string): boolean {
  const all = row.arms.flat();
  if (state && !all.some((c) => c.state === state || (state === "error" && c.state === "retry"))) return false;
  if (!text) return true;
  const word = text.toLowerCase();
  return row.task.toLowerCase().includes(word) || all.some((c) => [c.why, c.errorClass, ...(c.tags ?? [])].join(" ").toLowerCase().includes(word));
}

function gridKeys(id: string, list: Row[], chosen: number, choose: (n: number) => void, search: () => void) {
  const bad = (r: Row): boolean => r.arms.flat().some((c) => c.state === "error" || c.state === "fail" || c.state === "retry");
  const open = (): void => {
    const cells = list[chosen]?.arms.flat() ?? [];
    const cell = cells.find((c) => c.state !== "pass" && c.state !== "waiting") ?? cells[0];
    if (cell) go(href(cellPath(id, cell)));
  };
  return [
    { keys: "/", does: "search", run: search },
    { keys: "j", does: "next task", run: () => choose(chosen + 1) },
    { keys: "k", does: "previous task", run: () => choose(chosen - 1) },
    { keys: "e", does: "next task with a failure or an error", run: () => choose(Math.max(list.findIndex((r, i) => i > chosen && bad(r)), list.findIndex(bad))) },
    { keys: "g g", does: "first task", run: () => choose(0) },
    { keys: "G", does: "last task", run: () => choose(list.length - 1) },
    { keys: "Enter", does: "open the first cell of the task that did not pass", run: open },
  ];
}

function Marks(props: { id: string; cells: Cell[] }): JSX.Element {
  return (
    <span class="marks" style={{ minWidth: `${markWidth * Math.min(props.cells.length, marksInLine)}px` }}>
      {props.cells.map((c) => (
        <Link key={c.run} class={c.notes ? "noted" : undefined} to={cellPath(props.id, c)} title={summary(c)} label={summary(c)}>
          <Mark outcome={c.state} retried={c.attempts > 1} label="" />
        </Link>
      ))}
    </span>
  );
}

export function summary(c: Cell): string {
  const facts = [`${c.task}, ${c.arm}, run ${c.run}: ${outcomeWord(c.state)}${c.attempts > 1 ? ` after ${c.attempts} attempts` : ""}`];
  if (began(c)) facts.push(money(c.costUsd), count(c.turns, "turn"), duration(c.durationMs) + " with grading");
  if (c.notes) facts.push(count(c.notes, "note"));
  return visible(facts.join(" · ") + (c.tags?.length ? "\ntags: " + c.tags.join(", ") : "") + (c.why ? "\n" + c.why : ""));
}

const scaleWidth = 264;

/** The head of the differences: the ends of the scale and its zero, above the marks. */
function Scale(): JSX.Element {
  return (
    <span class="scale" style={{ width: `${scaleWidth}px` }}>
      <span>−100</span>
      <span>0</span>
      <span>+100</span>
    </span>
  );
}

function Difference(props: { name: string; value: Range | null }): JSX.Element {
  const v = props.value;
  const label = v ? `${props.name}: ${points(v.est)} points, ${v.lo === null ? "no CI" : `${points(v.lo)} to ${points(v.hi)}`}` : `${props.name}: unknown`;
  return <Whisker value={v} from={-1} to={1} width={scaleWidth} tone="ink" label={visible(label)} />;
}

function Overall(props: { arms: string[]; columns: Column<Row>[]; forest?: Forest; comparison: Comparison | null; groups: Group[] }): JSX.Element {
  const d = props.comparison?.decision;
  const value = d ? { est: d.effect, lo: d.lo, hi: d.hi } : (props.forest?.overall ?? null);
  const cell = (c: Column<Row>): JSX.Element | string => {
    if (c.name === "task") return "all tasks";
    if (c.name === "difference") return value ? points(value.est) : "–";
    if (c.name === "interval") return <Difference name="all tasks" value={value} />;
    const at = c.name.startsWith("arm") ? Number(c.name.slice(3)) : -1;
    const rate = groupOf(props.groups, props.arms[at] ?? "")?.passRate;
    return rate ? <span class={toneOf(at)}>{(100 * rate.est).toFixed(1)}%</span> : "";
  };
  return (
    <tfoot>
      <tr>
        {props.columns.map((c) => (
          <td key={c.name} class={(c.num ? "num " : "") + c.name}>
            {cell(c)}
          </td>
        ))}
      </tr>
    </tfoot>
  );
}

export function Legend(): JSX.Element {
  const all: [Cell["state"], string][] = [
    ["pass", "pass"],
    ["fail", "fail"],
    ["error", "error"],
    ["retry", "tried again"],
    ["running", "running"],
    ["waiting", "waiting"],
  ];
  return (
    <span class="legend soft push">
      {all.map(([outcome, text]) => (
        <span key={outcome}>
          <Mark outcome={outcome} label="" /> {text}
        </span>
      ))}
    </span>
  );
}
