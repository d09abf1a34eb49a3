// The shapes that the server's endpoints answer with. Fields that no page uses are left out.
import type { Outcome, Range } from "./ui";

export interface Arm {
  name: string;
  runs: number;
  passed: number;
  rate: Range | null;
  costUsd: number | null;
}

export interface Experiment {
  id: string;
  name: string;
  dir: string;
  kind: "benchmark" | "versus";
  state: "running" | "complete" | "incomplete" | "damaged" | "empty";
  problem?: string;
  createdMs: number;
  updatedMs: number;
  family: string;
  model: string;
  tasks: number;
  runs: number;
  planned: number;
  done: number;
  passed: number;
  failed: number;
  errors: number;
  inFlight: number;
  costUsd: number | null;
  knownCostUsd: number;
  elapsedMs: number;
  arms: Arm[] | null;
  claim: string;
  sentence: string;
}

export interface TraceFile {
  id: string;
  name: string;
  path: string;
  bytes: number;
  modifiedMs: number;
}

export interface ExperimentList {
  roots: string[];
  experiments: Experiment[];
  traces: TraceFile[] | null;
}

export interface CheckRate {
  check: string;
  source: string;
  passed: number;
  n: number;
  gate?: boolean;
  runs: string;
  mixed?: boolean;
}

export interface ReportTask {
  taskId: string;
  n: number;
  c: number;
  errors: number;
  missing: number;
  rate?: Range;
  checks?: CheckRate[];
}

export interface Totals {
  tasks: number;
  runs: number;
  planned: number;
  missing: number;
  passed: number;
  costUsd: number | null;
  knownCostUsd: number;
  costPerPass?: Range;
  medianDurationMs: number;
  medianTurns: number;
  attempts: number;
}

export interface Provenance {
  arm: string;
  armHash: string;
  agent: string;
  agentVersion?: string;
  model?: string;
  judge?: string;
  isolation?: string;
  network?: string;
  familyRevision: string;
}

/** What the models of some arms were given: what was changed, and whether it reached them. */
export interface Treatment {
  lines?: string[];
}

/** Why a claim is withheld, and the value of --allow that accepts it. */
export interface Reason {
  key: string;
  text: string;
  allow?: string;
}

export interface Group {
  name: string;
  differs?: string[];
  treatment?: Treatment;
  withheld?: Reason[];
  provenance: Provenance;
  tasks: ReportTask[];
  totals: Totals;
  passRate?: Range;
  passAtK: Record<string, { est: number; lo: number; hi: number } | { error: string }>;
  errors?: Record<string, number>;
  warnings?: string[];
}

export interface Factor {
  est: number;
  lo: number | null;
  hi: number | null;
  nTasks: number;
}

export interface Ratio {
  all?: Factor;
  commonlySolved?: Factor;
}

export interface Comparison {
  a: Provenance;
  b: Provenance;
  decision: {
    claim: string;
    effect: number;
    lo: number | null;
    hi: number | null;
    level: number;
    p: number | null;
    pAdj: number | null;
    mde: number;
    sentence: string;
    obstacles?: string[];
    warnings?: string[];
  };
  tasks: { taskId: string; nA: number; nB: number; meanA: number; meanB: number; delta: number; p?: number; pAdj?: number }[];
  withheld?: Reason[];
  same?: boolean;
  differs?: string[];
  requestDifferences?: { what: string; before?: string; after?: string; cause?: string; undeclared?: boolean }[];
  treatment?: Treatment;
  cost?: Ratio;
  time?: Ratio;
  turns?: Ratio;
  costA: number | null;
  costB: number | null;
  warnings?: string[];
}

export interface FamilyComparison {
  baseline?: string;
  pairs: { a: string; b: string; decision: Comparison["decision"]; withheld?: Reason[] }[];
  treatment?: Treatment;
  sets?: string[][];
  warnings?: string[];
}

export interface RunningCell {
  task: string;
  arm: string;
  run: number;
  attempt: number;
  elapsedMs: number;
  lastAction: string;
  lastActionMs: number;
  entries: number;
  stalled: boolean;
  trace: string;
}

export interface Status {
  state: "running" | "paused" | "stopping" | "ended";
  total: number;
  done: number;
  passed: number;
  failed: number;
  errors: number;
  retries: number;
  queued: number;
  concurrency: number;
  budgetUsd: number | null;
  costUsd: number | null;
  elapsedMs: number;
  burnUsdPerHour: number | null;
  leftMs: Range | null;
  held?: CellId[] | null;
  controllable: boolean;
  running: RunningCell[] | null;
}

export interface ExperimentDetail {
  experiment: Experiment;
  problems: { line: number; kind: string; message: string }[] | null;
  notes: string[] | null;
  report: { groups: Group[]; warnings?: string[] } | null;
  comparison: Comparison | null;
  family: FamilyComparison | null;
  comparisonError: string;
  plan: {
    id: string;
    seed: number;
    runs: number;
    tasks: string[];
    arms: { name: string; agent: string; model: string; hash: string; skills?: string }[];
    isolation: string;
    network: string;
    judge: string;
  } | null;
  repeat: string;
  live: Status | null;
}

export interface CellId {
  task: string;
  arm: string;
  run: number;
}

export interface Cell extends CellId {
  state: Outcome;
  attempt: number;
  attempts: number;
  score: number | null;
  costUsd: number | null;
  turns: number;
  durationMs: number;
  tokens: number;
  errorClass: string;
  why: string;
  startMs: number;
  judge: string;
  checks: string;
}

export interface Cells {
  tasks: string[];
  arms: string[];
  runs: number[];
  cells: Cell[];
}

export interface Forest {
  a: string;
  b: string;
  overall: Range | null;
  tasks: ({ taskId: string; nA: number; nB: number } & Range)[];
}

export interface Citation {
  file: string;
  line: number;
  text: string;
}

export interface Vote {
  verdict: string;
  summary: string;
  error: string;
  costUsd: number | null;
  durationMs: number;
  trace: string;
  citations: Citation[] | null;
}

/** One text or file that the agent of a run was to be given. */
export interface GivenPiece {
  kind: string;
  name: string;
  path?: string;
  from: string;
  given: "whole" | "part" | "name" | "absent" | "unknown";
  share?: number;
  why?: string;
  opened?: boolean;
  where?: string;
  tokens?: number;
}

/** What the model of a run was given. */
export interface Given {
  context: string;
  unknown?: string;
  pieces?: GivenPiece[];
  served?: { model: string; asked?: string; calls: number }[];
  systemTokens?: number;
  vendorTokens?: number;
  tools?: string[];
  managed?: string[];
  programs?: string[];
}

export interface CellDetail {
  experiment: { id: string; name: string };
  cell: Cell;
  previous: CellId | null;
  next: CellId | null;
  attempts: {
    attempt: number;
    verdict: string;
    errorClass: string;
    errorMessage: string;
    costUsd: number | null;
    turns: number;
    durationMs: number;
    startMs: number;
    endMs: number;
    final: boolean;
  }[] | null;
  record: { diffPath?: string; treatment?: Given } | null;
  rows: { check: string; source: string; pass?: boolean; gate?: boolean; message?: string }[] | null;
  grading: { name: string; text: string; bytes: number; cut: boolean }[] | null;
  diff: { text: string; bytes: number; cut: boolean; files: number; added: number; removed: number } | null;
  judge: { verdict: string; summary: string; votes: Vote[] | null } | null;
  flags: { kind: string; evidence: string; severity: string; file: string; line: number; rawLine: number }[] | null;
  milestones: { kind: string; timestampMs: number; turnIndex: number; elapsedMs: number }[] | null;
  perTurn: {
    turn: number;
    index: number;
    inputTokens: number;
    outputTokens: number;
    cacheReadInputTokens: number;
    cacheCreationInputTokens: number;
    costUsd: number | null;
    lane: string;
  }[] | null;
  traces: { role: string; trace: string; bytes: number; live: boolean }[] | null;
  hasCalls: boolean;
  hasPrompts: boolean;
  hasPanel?: boolean;
  problems: string[] | null;
}
