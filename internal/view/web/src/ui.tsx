// Small pieces that every page uses.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { absolute, ago, cutMiddle, percent, visible } from "./format";
import { href } from "./router";

export type Outcome = "pass" | "fail" | "error" | "retry" | "running" | "waiting";

const outcomeWords: Record<Outcome, string> = {
  pass: "passed",
  fail: "failed",
  error: "error, no verdict",
  retry: "error, will be tried again",
  running: "running",
  waiting: "waiting",
};

export function outcomeWord(outcome: Outcome): string {
  return outcomeWords[outcome] ?? outcome;
}

/** The mark of an outcome: told apart by shape as well as by colour. A retried cell has a line below.
 * An empty label is for marks that words follow. */
export function Mark(props: { outcome: Outcome; retried?: boolean; label?: string }): JSX.Element {
  const label = props.label ?? outcomeWord(props.outcome) + (props.retried ? ", after a retry" : "");
  return (
    <svg class={"mark " + props.outcome} viewBox="0 0 16 16" {...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" })}>
      {shape(props.outcome)}
      {props.retried && <path d="M3 15.2h10" stroke="currentColor" stroke-width="1.4" />}
    </svg>
  );
}

function shape(outcome: Outcome): JSX.Element {
  switch (outcome) {
    case "pass":
      return <circle cx="8" cy="8" r="5" fill="currentColor" />;
    case "fail":
      return <path d="M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4" stroke="currentColor" stroke-width="2.2" />;
    case "error":
      return <path d="M8 2.2L13.8 8 8 13.8 2.2 8z" fill="none" stroke="currentColor" stroke-width="1.5" />;
    case "retry":
      return (
        <>
          <path d="M8 2.2L13.8 8 8 13.8 2.2 8z" fill="none" stroke="currentColor" stroke-width="1.5" />
          <circle cx="8" cy="8" r="1.8" fill="currentColor" />
        </>
      );
    case "running":
      return (
        <>
          <circle cx="8" cy="8" r="5" fill="none" stroke="currentColor" stroke-width="1.5" />
          <path d="M8 8V3a5 5 0 0 1 5 5z" fill="currentColor" />
        </>
      );
    default:
      return <circle cx="8" cy="8" r="1.5" fill="currentColor" />;
  }
}

interface LinkProps {
  to: (string | number)[];
  query?: Record<string, string | undefined>;
  class?: string;
  title?: string;
  label?: string;
  current?: boolean;
  children: ComponentChildren;
}

/** The address of a cell; one of a comparison belongs to its own experiment. */
export function cellPath(id: string, c: { task: string; arm: string; run: number; of?: { experiment: string; arm: string } }): (string | number)[] {
  return ["x", c.of?.experiment ?? id, c.task, c.of?.arm ?? c.arm, c.run];
}

/** A link inside the application. */
export function Link(props: LinkProps): JSX.Element {
  return (
    <a
      href={href(props.to, props.query)}
      class={props.class}
      title={props.title}
      aria-label={props.label}
      aria-current={props.current ? "page" : undefined}
    >
      {props.children}
    </a>
  );
}

/** A name that may be long: cut in the middle, whole in the tooltip. */
export function Name(props: { text: string; max?: number }): JSX.Element {
  const text = visible(props.text);
  const cut = cutMiddle(text, props.max ?? 40);
  return cut === text ? <bdi>{text}</bdi> : <bdi title={text}>{cut}</bdi>;
}

export function When(props: { ms: number | null | undefined }): JSX.Element {
  return <time title={absolute(props.ms)}>{ago(props.ms)}</time>;
}

export function Copy(props: { text: string | (() => string | Promise<string>); label: string }): JSX.Element {
  const [done, setDone] = useState("");
  async function copy(): Promise<void> {
    const text = typeof props.text === "string" ? props.text : await props.text();
    try {
      await navigator.clipboard.writeText(text);
      setDone("copied");
    } catch {
      setDone("the browser refused");
    }
    setTimeout(() => setDone(""), 1500);
  }
  return (
    <button type="button" class="plain no-print" onClick={copy} aria-live="polite">
      {done || props.label}
    </button>
  );
}

export interface Range {
  est: number;
  lo: number | null;
  hi: number | null;
  method?: string;
}

/** A dot with a whisker on a fixed scale; zero stands out where it is inside the scale. */
export function Whisker(props: { value?: Range | null; from: number; to: number; width: number; tone: string; label: string }): JSX.Element {
  const { value, from, to, width } = props;
  const x = (n: number): number => 6 + ((Math.min(Math.max(n, from), to) - from) / (to - from)) * (width - 12);
  return (
    <svg class={"whisker " + props.tone} width={width} height={28} role="img" aria-label={props.label}>
      {from < 0 && to > 0 && <path d={`M${x(0)} 0V28`} stroke="var(--strong-line)" stroke-width="1" />}
      {from === 0 && <path d={`M6 21H${width - 6}`} stroke="var(--line)" />}
      {value && value.lo !== null && value.hi !== null && (
        <path d={`M${x(value.lo)} 10V18M${x(value.lo)} 14H${x(value.hi)}M${x(value.hi)} 10V18`} stroke="currentColor" stroke-width="1.5" fill="none" />
      )}
      {value && <circle cx={x(value.est)} cy="14" r="4" fill="currentColor" />}
    </svg>
  );
}

export function rateLabel(name: string, rate?: Range | null): string {
  if (!rate) return `${name}: no verdict yet`;
  return `${name}: ${percent(rate.est)}, CI ${percent(rate.lo)} to ${percent(rate.hi)}`;
}

export function Empty(props: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p>
        <strong>{props.title}</strong>
      </p>
      {props.children}
    </div>
  );
}

export function Reading(): JSX.Element {
  return (
    <p class="soft reading" role="status">
      Reading…
    </p>
  );
}

export function Problem(props: { message: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <p>{visible(props.message)}</p>
      {props.children}
    </div>
  );
}

export function Warnings(props: { list?: string[] | null }): JSX.Element | null {
  if (!props.list?.length) return null;
  return (
    <ul class="warnings">
      {props.list.map((text) => (
        <li key={text}>{visible(text)}</li>
      ))}
    </ul>
  );
}

export interface Column<T> {
  name: string;
  head: ComponentChildren;
  num?: boolean;
  sort?: (item: T) => number | string | null | undefined;
  show: (item: T) => ComponentChildren;
}

/** Sorts a copy by a column; unknown values come last in both directions. */
export function sorted<T>(list: T[], columns: Column<T>[], order: string): T[] {
  const down = order.startsWith("-");
  const column = columns.find((c) => c.name === order.replace(/^-/, ""));
  if (!column?.sort) return list;
  const by = column.sort;
  return [...list].sort((a, b) => {
    const [x, y] = [by(a), by(b)];
    if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
    if (y === null || y === undefined) return -1;
    const less = x < y ? -1 : x > y ? 1 : 0;
    return down ? -less : less;
  });
}

export function Head<T>(props: { columns: Column<T>[]; order: string; onOrder: (order: string) => void }): JSX.Element {
  return (
    <thead>
      <tr>
        {props.columns.map((c) => {
          const chosen = props.order.replace(/^-/, "") === c.name;
          const down = props.order.startsWith("-");
          return (
            <th key={c.name} class={(c.num ? "num " : "") + c.name} scope="col" aria-sort={chosen ? (down ? "descending" : "ascending") : undefined}>
              {c.sort ? (
                <button type="button" onClick={() => props.onOrder(chosen && !down ? "-" + c.name : c.name)}>
                  {c.head}
                  {chosen ? (down ? " ↓" : " ↑") : ""}
                </button>
              ) : (
                c.head
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

/** Sets the title of the page, and moves the focus to its content when the page changes. */
export function Page(props: { title: string; wide?: boolean; children: ComponentChildren }): JSX.Element {
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = props.title ? `${visible(props.title)} · fit` : "fit";
  }, [props.title]);
  return (
    <main id="content" ref={ref} tabIndex={-1} class={props.wide ? "wide" : ""}>
      {props.children}
    </main>
  );
}

/** What is too wide for the page scrolls by itself. Where it does, Tab reaches it. */
export function Scroll(props: { label?: string; children: ComponentChildren }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  useEffect(() => {
    const outer = box.current;
    if (!outer) return;
    const watch = new ResizeObserver(() => setWide(outer.scrollWidth > outer.clientWidth || outer.scrollHeight > outer.clientHeight));
    watch.observe(outer);
    if (outer.firstElementChild) watch.observe(outer.firstElementChild);
    return () => watch.disconnect();
  }, []);
  return (
    <div class="scroll" ref={box} tabIndex={wide ? 0 : undefined} {...(props.label ? { role: "region", "aria-label": props.label } : {})}>
      {props.children}
    </div>
  );
}
