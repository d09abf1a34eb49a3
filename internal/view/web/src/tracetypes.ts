// The shapes of the endpoints about traces.

export interface Picture {
  n: number;
  block: number;
  mediaType?: string;
}

export interface CallOutcome {
  index: number;
  isError: boolean;
  text: string;
  bytes: number;
  cut: boolean;
  durationMs?: number | null;
  images?: Picture[] | null;
}

export interface Block {
  type: "text" | "thinking" | "tool_use" | "image" | "other";
  text?: string;
  bytes?: number;
  cut?: boolean;
  id?: string;
  name?: string;
  title?: string;
  input?: string;
  result?: CallOutcome | null;
  n?: number;
  block?: number;
}

export interface Entry {
  index: number;
  role: "system" | "assistant" | "user" | "tool_result";
  lane: string;
  timestampMs: number;
  line: number;
  parent?: string;
  turn?: number;
  blocks?: Block[] | null;
  usage?: { inputTokens: number; outputTokens: number; cacheReadInputTokens: number; cacheCreationInputTokens: number } | null;
  toolUseId?: string;
  callIndex?: number | null;
  isError?: boolean;
  subtype?: string;
  data?: string;
  dataBytes?: number;
  dataCut?: boolean;
}

export interface PageOfEntries {
  page: number;
  items: Entry[] | null;
}

export interface LaneMarks {
  lane: string;
  agent?: string;
  model?: string;
  count: number;
  errors: number;
  marks: number[];
  errorMarks: number[];
}

export interface Lanes {
  entries: number;
  size: number;
  lanes: LaneMarks[] | null;
}

export interface TraceOverview {
  id: string;
  name: string;
  bytes: number;
  modifiedMs: number;
  live: boolean;
  /** True while the trace is read for the first time; the rest is null until then. */
  indexing?: boolean;
  entries: number | null;
  experiment: string;
  cell: { task: string; arm: string; run: number } | null;
  overview: {
    turns: number;
    turnCount: number;
    taskPrompt: string | null;
    verdict?: string;
    closing?: string;
    metadata?: { model?: string | null };
    summary?: { totalCostUsd?: number | null; durationMs?: number | null; result?: string };
    tools: { tool: string; count: number }[] | null;
    lanes: { lane: string; agent?: string; model?: string; turns: number; costUsd: number | null; firstMs?: number; lastMs?: number }[] | null;
    problems?: { skippedLines: number; first?: { line: number; reason: string }[] };
  } | null;
  cost: unknown;
}

export interface Found {
  count: number;
  indexes: number[] | null;
  capped: boolean;
  excerpts?: Record<string, string[]> | null;
}

export interface Message {
  line: number;
  timestampMs?: number;
  kind: string;
  from: string;
  to: string[] | null;
  askIds?: number[] | null;
  text: string;
  answers?: { line: number; timestampMs?: number; from: string; askId?: number; text: string; index?: number }[] | null;
  index: number;
}

export interface Action {
  turn: number;
  line: number;
  kind: string;
  target: string;
  isError: boolean;
}

export interface Aligned {
  alignment: {
    a: { file: string; actions: Action[] };
    b: { file: string; actions: Action[] };
    distance: number;
    similarity: number;
    firstDivergence: number | null;
    steps: { op: "match" | "change" | "only-a" | "only-b"; a: Action | null; b: Action | null }[] | null;
  };
  entriesA: number[] | null;
  entriesB: number[] | null;
}
