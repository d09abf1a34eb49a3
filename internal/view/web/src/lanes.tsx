// The strip beside a transcript: one thin column per participant, errors visible from afar.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { useApi, url } from "./api";
import { count, visible } from "./format";
import type { Store } from "./store";
import type { LaneMarks, Lanes } from "./types";

const buckets = 200;
const laneWidth = 12;

interface StripProps {
  store: Store;
  at: number;
  hits: number[];
  onJump: (index: number) => void;
}

export function LaneStrip(props: StripProps): JSX.Element | null {
  const box = useRef<SVGSVGElement>(null);
  // A long trace is read once before its lanes are asked for, so that it is not read twice at a time.
  const known = props.store.overview.value?.entries != null;
  const { data } = useApi<Lanes>(known ? url("trace/lanes", [["trace", props.store.trace], ["buckets", buckets]]) : null);
  const total = Math.max(1, props.store.total.value ?? data?.entries ?? 1);
  const lanes = (data?.lanes ?? []).slice(0, 12);
  const size = data?.size ?? 1;
  const width = Math.max(28, lanes.length * laneWidth + 10);
  const last = total - 1;
  const jump = (event: PointerEvent): void => {
    const rect = box.current?.getBoundingClientRect();
    if (rect && (event.type === "pointerdown" || event.buttons === 1)) props.onJump(Math.round(((event.clientY - rect.top) / rect.height) * last));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: Math.ceil(total / 20), PageUp: -Math.ceil(total / 20), Home: -total, End: total };
    const by = steps[event.key];
    if (by === undefined) return;
    event.preventDefault();
    props.onJump(Math.min(Math.max(props.at + by, 0), last));
  };
  return (
    <svg
      ref={box}
      class="lanes no-print"
      width={width}
      viewBox={`0 0 ${width} ${buckets}`}
      preserveAspectRatio="none"
      role="slider"
      tabIndex={0}
      aria-label={"Place in the trace. " + lanes.map((l) => visible(`${l.lane}: ${count(l.count, "entry", "entries")}, ${count(l.errors, "error")}`)).join("; ")}
      aria-orientation="vertical"
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={Math.min(props.at, last)}
      onPointerDown={jump}
      onPointerMove={jump}
      onKeyDown={onKeyDown}
    >
      {lanes.map((lane, i) => (
        <LaneColumn key={lane.lane} lane={lane} x={4 + i * laneWidth} scale={(size * buckets) / total} />
      ))}
      <path class="hit-marks" d={hitPath(props.hits, total, width)} />
      <rect class="here" x={0} y={Math.min((props.at / total) * buckets, buckets - 1)} width={width} height={1} />
    </svg>
  );
}

/** One column: faint where the participant did something, strong where something failed. */
function LaneColumn(props: { lane: LaneMarks; x: number; scale: number }): JSX.Element {
  const { lane, x, scale } = props;
  const most = Math.max(1, ...lane.marks);
  return (
    <>
      <title>{visible(lane.lane)}</title>
      <path class="lane-line" d={`M${x + 4} 0V${buckets}`} />
      {lane.marks.map((n, i) => n > 0 && <rect key={i} class="lane-mark" x={x} y={i * scale} width={8} height={Math.max(0.6, scale * 0.8)} opacity={0.35 + (0.65 * n) / most} />)}
      <path class="lane-error" d={lane.errorMarks.map((n, i) => errorMark(n, lane.marks[i] ?? n, x, i * scale, scale)).join("")} />
    </>
  );
}

/** As wide as the share of what failed: one failure of many is a notch, and not a red line. */
function errorMark(errors: number, all: number, x: number, y: number, scale: number): string {
  if (errors === 0) return "";
  const width = 2 + (8 * errors) / Math.max(errors, all);
  return `M${x - 1} ${y}h${width}v${Math.max(1, scale)}h${-width}z`;
}

function hitPath(hits: number[], total: number, width: number): string {
  const rows = new Set(hits.map((n) => Math.round((n / total) * buckets * 2) / 2));
  return [...rows].map((y) => `M${width - 6} ${y}h6v0.8h-6z`).join("");
}
