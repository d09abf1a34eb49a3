// Written by go test ./internal/view -run Types -update from the types of the server. Do not edit.
import type { Outcome } from "./ui";

export interface Action {
  turn: number;
  line: number;
  kind: string;
  target: string;
  isError: boolean;
}

export interface AgentSummary {
  agent: string;
  arm: string;
  nTasks: number;
  nRuns: number;
  planned: number;
  missing: number;
  excludedEnv: number;
  disqualified: number;
  timeouts: number;
  retriedRuns: number;
  limits?: Record<string, number>;
  passRate: Interval | null;
  bounds?: { worst: number; best: number; lo: number; hi: number };
  score?: Interval;
  passAtK: Record<string, { est: number; lo: number; hi: number } | { error: string }> | null;
  passHatK: Record<string, { est: number; lo: number; hi: number } | { error: string }> | null;
  boundsOf?: Record<string, { worst: number; best: number; lo: number; hi: number }>;
  corrected: { observedRate: number; correctedRate: number | null; tpr: number | null; tnr: number | null; ci95Low: number | null; ci95High: number | null; dimension: string; agent: string; n: number; facts?: number; undecided?: number; worstRate?: number; bestRate?: number; nEff: number; m1: number; m0: number; rawTheta: number | null; method: string; status: string }[] | null;
  blended: number | null;
  blendedBounds?: { worst: number; best: number; lo: number; hi: number };
  coverage: number | null;
  efficiency: { wallClockMs: number | null; turns: number | null; costUsd: number | null; inputTokens: number | null; outputTokens: number | null; cacheReadTokens: number | null; cacheWriteTokens: number | null; cacheHitRatio: number | null; editsAttempted: number | null; editsFailed: number | null; explorationShare: number | null; firstEditMs: number | null; greenMs: number | null; toolCalls: Record<string, number> | null };
  costUsd: number | null;
  integrity: Record<string, number> | null;
  errors: Record<string, number> | null;
  judging: Record<string, { pass: number; fail: number; undecided: number; abstained: number }> | null;
  droppedClaims: number;
  unseenEdits: number;
  differs?: string[];
  treatment?: Treatment;
  withheld?: Reason[];
  warnings: string[] | null;
}

export interface Aligned {
  version: number;
  alignment: Alignment;
  entriesA: number[] | null;
  entriesB: number[] | null;
}

export interface AlignedSide {
  file: string;
  actions: Action[];
  loops: { action: string; times: number; turn: number }[] | null;
  rereads: { path: string; times: number }[] | null;
}

export interface AlignedStep {
  op: "match" | "change" | "only-a" | "only-b";
  a: Action | null;
  b: Action | null;
}

export interface Alignment {
  a: AlignedSide;
  b: AlignedSide;
  distance: number;
  similarity: number;
  firstDivergence: number | null;
  steps: AlignedStep[] | null;
}

export interface Arm {
  name: string;
  runs: number;
  passed: number;
  rate: Interval | null;
  costUsd: number | null;
}

export interface Block {
  type: "text" | "thinking" | "tool_use" | "image" | "other";
  text?: string;
  bytes: number;
  cut: boolean;
  id?: string;
  name?: string;
  title?: string;
  input?: string;
  result?: CallOutcome;
  n?: number;
  block?: number;
  mediaType?: string;
}

export interface CallOutcome {
  index: number;
  isError: boolean;
  text: string;
  bytes: number;
  cut: boolean;
  durationMs: number | null;
  exitCode?: number;
  firstError?: string;
  images?: Picture[];
}

export interface Cell {
  task: string;
  arm: string;
  run: number;
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
  notes?: number;
  tags?: string[];
  notStarted?: boolean;
  of?: { experiment: string; arm: string };
}

export interface CellDetail {
  version: number;
  experiment: { id: string; name: string; running: boolean };
  cell: Cell;
  previous: CellId | null;
  next: CellId | null;
  attempts: { attempt: number; verdict: string; errorClass: string; errorMessage: string; costUsd: number | null; turns: number; durationMs: number; startMs: number; endMs: number; final: boolean; notStarted?: boolean }[] | null;
  record: { taskId: string; runIndex: number; verdict: string; score?: number; costUsd: number | null; costBreakdown?: { agent: number; supervisor: number; judge: number }; turns: number; profiles: { agent: string | null; supervisor: string | null; judge: string | null }; model: { agent: string; supervisor?: string; judge?: string }; skillSetHash: string; familyRevision: string; durationMs: number; agentTracePath: string; supervisorTracePath: string; judgeTracePath: string; invariants?: { details: unknown[] | null; exitCode: number; stderr?: string }; grade?: { verdict: string; gatesPass: boolean; score?: number; malformed?: number; healthy: boolean; reason?: string }; hiddenTests?: { details: unknown[] | null; error?: string }; verify?: { passed: boolean; exitCode: number; timedOut?: boolean; startMs: number; endMs: number; error?: string; outputPath?: string }; lint?: { exitCode: number; before: number; after: number; error?: string }; submission?: string; judgeVerdict?: { verdict: string; summary: string }; judgeVotes?: { verdict: string; summary?: string; error?: string; costUsd: number | null; tokens?: { input: number; output: number; cacheRead: number; cacheWrite: number }; durationMs: number; tracePath?: string }[]; agentError?: { message: string; aborted: boolean }; preflightError?: { phase: string; message: string; exitCode: number }; version: number; experiment: string; arm: string; armHash: string; attempt: number; seed: number; alias?: string; errorClass?: string; errorMessage?: string; errorCause?: string; budgetOf?: string; unverifiedErrors?: number; begun?: boolean; failedCalls?: number; final: boolean; startMs: number; endMs: number; phaseMs?: Record<string, number>; heldMs?: number; concurrency?: number; pressure?: Record<string, number>; tokens?: { input: number; output: number; cacheRead: number; cacheWrite: number }; costSource?: string; agent: string; agentVersion?: string; agentBinary?: string; agentSha256?: string; agentScripts?: Record<string, string>; agentArgv?: string[]; authMode?: string; outcome?: string; keyVisible: boolean; gateway?: string; gatewayReason?: string; callsPath?: string; faults?: string; replay?: string; originalCostUsd?: number; replayedCalls?: number; replayDiffered?: number; replayDifference?: string; treatment?: Given; isolation: string; container?: { engine: string; version: string; image: string; id: string; digest?: string }; workspace?: string; agentNetwork: boolean; graderNetwork: boolean; sharedProcess?: string; network?: string; serviceNetwork?: string; digests: { visible: string; hidden: string; base?: string; final?: string; judge?: string }; tools?: Record<string, string>; host?: string; worker?: string; signedBy?: string; regraded?: string; shard?: string; cluster?: string; tags?: string[]; sequential?: { alpha: number; position: number; tasks: number; runs: number; baseline: string; candidate: string }; survivors: number; diffPath?: string; artifacts?: { path: string; sha256: string; bytes: number }[]; runDir: string; notes?: string[]; invalid?: string[]; imported?: { format: string; file: string; sha256: string; fractional?: boolean; conditions?: string; doubts?: string[]; incomplete?: string }; origin?: string; prev: string; hash: string } | null;
  rows: { check: string; source: string; pass?: boolean; gate?: boolean; message?: string }[] | null;
  wayOut?: string;
  grading: { name: string; text: string; bytes: number; cut: boolean }[] | null;
  answer?: { name: string; text: string; bytes: number; cut: boolean };
  diff: Diff | null;
  cited?: Citation[];
  judge: { verdict: string; summary: string; votes: Vote[] | null } | null;
  flags: { kind: string; evidence: string; severity: string; file?: string; line?: number; seq?: number; rawLine?: number; suspected?: boolean; cleared?: { by: string; reason: string; atMs: number }; meaning: string }[] | null;
  milestones: Milestone[] | null;
  perTurn: { turn: number; index: number; lane: string; inputTokens: number; outputTokens: number; cacheReadInputTokens: number; cacheCreationInputTokens: number; costUsd: number | null }[] | null;
  traces: { role: string; trace: string; bytes: number; live: boolean }[] | null;
  hasCalls: boolean;
  hasPrompts: boolean;
  hasPanel: boolean;
  notes: Note[];
  problems: string[] | null;
}

export interface CellId {
  task: string;
  arm: string;
  run: number;
}

export interface Cells {
  version: number;
  tasks: string[];
  arms: string[];
  runs: number[];
  cells: Cell[];
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

export interface Citation {
  file: string;
  line: number;
  text: string;
}

export interface Comparison {
  version: number;
  a: Provenance;
  b: Provenance;
  measure: string;
  notPlanned?: string[];
  rateA?: Interval;
  rateB?: Interval;
  boundsA?: { worst: number; best: number; lo: number; hi: number };
  boundsB?: { worst: number; best: number; lo: number; hi: number };
  decision: Decision;
  withheld?: Reason[];
  same?: boolean;
  requestDifferences?: { what: string; before?: string; after?: string; cause?: string; undeclared?: boolean }[];
  unsure?: { a: { missing: number; retried: number; unplanned?: number; unplannedRuns?: number; unverified: number }; b: { missing: number; retried: number; unplanned?: number; unplannedRuns?: number; unverified: number } };
  bounds?: { worst: number; best: number; lo: number; hi: number };
  retries?: { a: number; b: number; runsA: number; runsB: number; p: number };
  failedCalls?: { a: number; b: number; runsA: number; runsB: number; p: number };
  differs?: string[];
  treatment?: Treatment;
  errorsA?: Record<string, number>;
  errorsB?: Record<string, number>;
  limitsA?: Record<string, number>;
  limitsB?: Record<string, number>;
  sequential?: boolean;
  design?: { between: number; withinCandidate: number; withinBaseline: number; runsCandidate: number; runsBaseline: number; alpha: number; power: number };
  tasks: { taskId: string; nA: number; nB: number; meanA: number; meanB: number; delta: number; p?: number; pAdj?: number }[];
  cost?: Ratio;
  time?: Ratio;
  turns?: Ratio;
  costA: number | null;
  costB: number | null;
  judgeA?: { asked: number; passed: number; failed: number; undecided: number; mechanical?: Interval; costUsd: number | null; models?: string[]; digests?: string[]; agreement?: { votes: number; runs: number; unanimous: number; observed: number; alpha?: { value: number; se?: number; observed: number; expected: number; items: number }; kappa?: { value: number; se?: number; observed: number; expected: number; items: number }; effectiveVotes?: number }; corrected?: { status: string; passRate?: Interval; judged?: Interval; observed: number; calibration: { agent?: string; tp: number; m1: number; tn: number; m0: number }; perArm?: boolean; design: string; caveat?: string } };
  judgeB?: { asked: number; passed: number; failed: number; undecided: number; mechanical?: Interval; costUsd: number | null; models?: string[]; digests?: string[]; agreement?: { votes: number; runs: number; unanimous: number; observed: number; alpha?: { value: number; se?: number; observed: number; expected: number; items: number }; kappa?: { value: number; se?: number; observed: number; expected: number; items: number }; effectiveVotes?: number }; corrected?: { status: string; passRate?: Interval; judged?: Interval; observed: number; calibration: { agent?: string; tp: number; m1: number; tn: number; m0: number }; perArm?: boolean; design: string; caveat?: string } };
  machines?: { workers: number; tasks: number; unlike?: { taskId: string; why: string }[] };
  flowA?: { planned: number; started: number; retried: number; why?: Record<string, number>; limited: number; held: number; failedCalls: number; graded: number };
  flowB?: { planned: number; started: number; retried: number; why?: Record<string, number>; limited: number; held: number; failedCalls: number; graded: number };
  firstAttempts?: { passedA: number; runsA: number; passedB: number; runsB: number; errorsA?: number; errorsB?: number; difference: number | null };
  controls?: { arm: string; kind: string; passed: boolean; decision?: Decision; text: string }[];
  signedA?: { records: number; signed: number; by?: string[]; gone?: string };
  signedB?: { records: number; signed: number; by?: string[]; gone?: string };
  warnings?: string[];
  imported?: string;
  validity: string;
}

export interface Decision {
  claim: string;
  effect: number;
  lo: number | null;
  hi: number | null;
  level: number;
  p: number;
  pAdj: number;
  eValue: number | null;
  method: string;
  draws?: number;
  seed?: number;
  intervalMethod?: string;
  nTasks: number;
  nRuns: number;
  excluded: { candidate: { excluded: number; planned: number }; baseline: { excluded: number; planned: number } };
  nUnpaired: number;
  mde: number;
  sentence: string;
  said: { head: string; text: string; evidence: string[] | null; rest?: string[] };
  nonInferior?: { margin: number; limit: number | null; shown: boolean; against?: string[] };
  unsure?: string;
  possible?: string[];
  obstacles?: string[];
  warnings?: string[];
}

export interface Diff {
  changes: FileChange[];
  bytes: number;
  cut: boolean;
  files: number;
  added: number;
  removed: number;
  generated: number;
}

export interface DiffLine {
  sign: " " | "+" | "-" | "@" | "\\";
  text: string;
  before?: number;
  after?: number;
}

export interface Entry {
  index: number;
  role: "system" | "assistant" | "user" | "tool_result";
  lane: string;
  timestampMs: number;
  line: number;
  parent?: string;
  blocks: Block[] | null;
  usage?: { inputTokens: number; outputTokens: number; cacheReadInputTokens: number; cacheCreationInputTokens: number };
  toolUseId?: string;
  callIndex?: number;
  isError?: boolean;
  subtype?: string;
  data?: string;
  dataBytes?: number;
  dataCut?: boolean;
}

export interface EvalReport {
  schemaVersion: string;
  runId: string;
  createdMs: number;
  seed: number;
  isolation: string;
  sandbox: string;
  network?: string;
  tool: { version: string; commit: string };
  statement: string;
  signed?: { records: number; signed: number; by?: string[]; gone?: string };
  agents: { id: string; arm: string; binary: string; sha256: string; version: string; argv: string[] | null; model: string; authMode: string }[] | null;
  tasks: { id: string; sha: string; promptSha256: string; cluster: string; split: string }[] | null;
  cells: VersusCell[] | null;
  perAgent: AgentSummary[] | null;
  pairs: Pair[] | null;
  calibration: { id: string; dimension: string; status: string; reason?: string; tpr: number | null; tnr: number | null; m1: number; m0: number; labelDesign: string; carried?: boolean; pooled: { agent?: string; tp: number; m1: number; tn: number; m0: number }; perArm: { agent?: string; tp: number; m1: number; tn: number; m0: number }[] | null; homogeneity?: { tests: { a: string; b: string; rate: string; gap: number; p: number; pAdj: number }[] | null; perAgent: boolean; reason: string; pooled: { agent?: string; tp: number; m1: number; tn: number; m0: number } }; labels: number }[] | null;
  panel: { models: string[] | null; members: { name: string; model: string; protocol: string; family: string; leftOut?: string; selfTest?: { injections: number; landed: number; controls: number; failed: number; missing: number }; verdicts: number; abstained: number; droppedClaims: number; swaps?: { pairs: number; decisive: number; flips: number; primacy: number; recency: number; flipRate: number; firstPick: number; coverage: number; a: number; b: number; ties: number; perDimension: Record<string, { pairs: number; decisive: number; flips: number; primacy: number; recency: number; flipRate: number; firstPick: number; coverage: number; a: number; b: number; ties: number }> | null; dropped: boolean }; cost: { replies: number; usage: { input_tokens: number; output_tokens: number; cache_read_tokens?: number; cache_write_tokens?: number; cache_write_1h_tokens?: number; reasoning_tokens?: number }; usd: number; unpriced: number } }[] | null; choices: { dimension: string; members: string[] | null; accuracy: { agent?: string; tp: number; m1: number; tn: number; m0: number }[] | null; panel: { agent?: string; tp: number; m1: number; tn: number; m0: number }; errorCorrelation: number | null; effectiveVotes: number | null }[] | null; nEff: number | null; errorCorrelation: number | null; mode: string; pairwise: string; selfTest: boolean; sameFamily: boolean; missing: number };
  weights: Record<string, { weight: number; heuristic: number }> | null;
  notPlanned?: string[];
  cost: { agentsUsd: number | null; agentsKnownUsd: number; judgesUsd: number | null; judgesKnownUsd: number; judgesShare: number | null; replies: number; perReplyUsd: number | null; perMember: Record<string, { replies: number; usage: { input_tokens: number; output_tokens: number; cache_read_tokens?: number; cache_write_tokens?: number; cache_write_1h_tokens?: number; reasoning_tokens?: number }; usd: number; unpriced: number }> | null; perDimension: Record<string, { replies: number; usage: { input_tokens: number; output_tokens: number; cache_read_tokens?: number; cache_write_tokens?: number; cache_write_1h_tokens?: number; reasoning_tokens?: number }; usd: number; unpriced: number }> | null };
  warnings: string[] | null;
  controls?: { arm: string; kind: string; passed: boolean; decision?: Decision; text: string }[];
  validity: string;
}

export interface Exchange {
  version: number;
  request: { text: string; bytes: number; cut: boolean };
  response: { text: string; bytes: number; cut: boolean };
  missing: string;
}

export interface Experiment {
  id: string;
  name: string;
  dir: string;
  kind: "benchmark" | "versus" | "comparison";
  state: "running" | "complete" | "incomplete" | "damaged" | "empty";
  problem?: string;
  stopped?: string;
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

export interface ExperimentDetail {
  version: number;
  experiment: Experiment;
  problems: { line: number; kind: string; message: string }[] | null;
  notes: string[] | null;
  report: Report | null;
  comparison: Comparison | null;
  family: FamilyComparison | null;
  comparisonError: string;
  plan: Plan | null;
  firstLines?: string[];
  repeat: string;
  continue?: string;
  live: Status | null;
  views: Note[];
  skill?: string;
}

export interface ExperimentList {
  version: number;
  roots: string[];
  experiments: Experiment[];
  traces: TraceFile[] | null;
}

export interface Factor {
  est: number;
  lo: number | null;
  hi: number | null;
  nTasks: number;
}

export interface FamilyComparison {
  version: number;
  measure: string;
  notPlanned?: string[];
  treatment?: Treatment;
  baseline?: string;
  arms: { name: string; provenance: Provenance; rate?: Interval; bounds?: { worst: number; best: number; lo: number; hi: number }; costUsd: number | null; missing?: number; retriedRuns?: number; limits?: Record<string, number>; flow?: { planned: number; started: number; retried: number; why?: Record<string, number>; limited: number; held: number; failedCalls: number; graded: number }; differs?: string[]; judge?: { asked: number; passed: number; failed: number; undecided: number; mechanical?: Interval; costUsd: number | null; models?: string[]; digests?: string[]; agreement?: { votes: number; runs: number; unanimous: number; observed: number; alpha?: { value: number; se?: number; observed: number; expected: number; items: number }; kappa?: { value: number; se?: number; observed: number; expected: number; items: number }; effectiveVotes?: number }; corrected?: { status: string; passRate?: Interval; judged?: Interval; observed: number; calibration: { agent?: string; tp: number; m1: number; tn: number; m0: number }; perArm?: boolean; design: string; caveat?: string } } }[] | null;
  pairs: { a: string; b: string; decision: Decision; observed?: string; withheld?: Reason[]; same?: boolean; requestDifferences?: { what: string; before?: string; after?: string; cause?: string; undeclared?: boolean }[]; unsure?: { a: { missing: number; retried: number; unplanned?: number; unplannedRuns?: number; unverified: number }; b: { missing: number; retried: number; unplanned?: number; unplannedRuns?: number; unverified: number } }; bounds?: { worst: number; best: number; lo: number; hi: number }; retries?: { a: number; b: number; runsA: number; runsB: number; p: number }; failedCalls?: { a: number; b: number; runsA: number; runsB: number; p: number } }[];
  sets?: string[][];
  warnings?: string[];
  imported?: string;
  controls?: { arm: string; kind: string; passed: boolean; decision?: Decision; text: string }[];
  validity: string;
}

export interface FileChange {
  name: string;
  note: string;
  lines: DiffLine[];
  added: number;
  removed: number;
}

export interface Forest {
  version: number;
  a: string;
  b: string;
  tasks: { taskId: string; nA: number; nB: number; est: number | null; lo: number | null; hi: number | null; method: string }[];
  overall: { est: number; lo: number | null; hi: number | null };
}

export interface Found {
  version: number;
  count: number;
  indexes: number[] | null;
  capped: boolean;
  excerpts: Record<string, string[]> | null;
}

export interface Given {
  context: string;
  unknown?: string;
  pieces?: GivenPiece[];
  served?: { model: string; asked?: string; calls: number }[];
  implausible?: number;
  miscounted?: string;
  systemTokens?: number;
  vendorTokens?: number;
  tools?: string[];
  toolTokens?: number;
  managed?: string[];
  programs?: string[];
}

export interface GivenPiece {
  kind: string;
  name: string;
  path?: string;
  digest?: string;
  from: string;
  given: "whole" | "part" | "name" | "absent" | "unknown";
  share?: number;
  why?: string;
  opened?: boolean;
  where?: string;
  tokens?: number;
}

export interface Group {
  name: string;
  provenance: Provenance;
  scope?: string;
  number?: string;
  signed?: { records: number; signed: number; by?: string[]; gone?: string };
  tasks: ReportTask[];
  totals: Totals;
  passRate?: Interval;
  bounds?: { worst: number; best: number; lo: number; hi: number };
  passAtK: Record<string, { est: number; lo: number; hi: number } | { error: string }> | null;
  boundsOf?: Record<string, { worst: number; best: number; lo: number; hi: number }>;
  atLeastK?: Record<string, { est: number; lo: number; hi: number } | { error: string }>;
  meanScore?: Interval;
  scoreAtK?: Record<string, { est: number; lo: number; hi: number } | { error: string }>;
  judge?: { asked: number; passed: number; failed: number; undecided: number; mechanical?: Interval; costUsd: number | null; models?: string[]; digests?: string[]; agreement?: { votes: number; runs: number; unanimous: number; observed: number; alpha?: { value: number; se?: number; observed: number; expected: number; items: number }; kappa?: { value: number; se?: number; observed: number; expected: number; items: number }; effectiveVotes?: number }; corrected?: { status: string; passRate?: Interval; judged?: Interval; observed: number; calibration: { agent?: string; tp: number; m1: number; tn: number; m0: number }; perArm?: boolean; design: string; caveat?: string } };
  errors?: Record<string, number>;
  causes?: { class: string; cause?: string; message: string; wayOut?: string; runs: number }[];
  cheats?: { what: string; runs: number; wayOut: string }[];
  limits?: Record<string, number>;
  flow?: { planned: number; started: number; retried: number; why?: Record<string, number>; limited: number; held: number; failedCalls: number; graded: number };
  load?: { concurrency?: number; held?: number; repeated?: number; pressed?: number };
  differs?: string[];
  treatment?: Treatment;
  withheld?: Reason[];
  warnings?: string[];
  imported?: string;
}

export interface Interval {
  est: number;
  lo: number;
  hi: number;
  se?: number;
  level: number;
  method: string;
  warnings?: string[];
}

export interface LaneMarks {
  lane: string;
  agent: string;
  model: string;
  count: number;
  errors: number;
  marks: number[];
  errorMarks: number[];
}

export interface Lanes {
  version: number;
  entries: number;
  size: number;
  lanes: LaneMarks[] | null;
}

export interface Member {
  lane: string;
  dialect?: string;
  agent?: string;
  model?: string;
  turns: number;
  costUsd: number | null;
  firstMs?: number;
  lastMs?: number;
  working?: boolean;
}

export interface Members {
  version: number;
  run: string;
  traces: string[];
  costUsd: number | null;
  members: Member[];
}

export interface Message {
  line: number;
  timestampMs?: number;
  kind: string;
  from: string;
  to: string[] | null;
  askIds?: number[];
  text: string;
  index: number;
  answers: { line: number; timestampMs?: number; from: string; askId: number; text: string; index: number }[] | null;
}

export interface Milestone {
  kind: string;
  timestampMs: number;
  turnIndex: number;
  elapsedMs: number;
}

export interface Note {
  id: string;
  atMs: number;
  by: string;
  task?: string;
  arm?: string;
  run: number;
  record?: string;
  text?: string;
  tags?: string[];
  view?: string;
  removes?: string;
  key?: string;
  signature?: string;
  seal: "own" | "foreign" | "unsigned" | "altered";
  stale?: boolean;
}

export interface PageOfEntries {
  version: number;
  page: number;
  items: Entry[] | null;
}

export interface Pair {
  a: string;
  b: string;
  diff: { est: number; lo: number | null; hi: number | null; p: number; pAdj: number; method: string; nTasks: number } | null;
  mde: number | null;
  eValue: number | null;
  dimensions: { dimension: string; nTasks: number; observed: { est: number; lo: number | null; hi: number | null; p: number; pAdj: number; method: string; nTasks: number }; undecided?: number; corrected: { est: number; lo: number | null; hi: number | null; p: number; pAdj: number; method: string; nTasks: number } | null; perAgent: boolean; status: string; claim: string; obstacles: string[] | null; withheld?: Reason[] }[] | null;
  pairwise: { winner: string; perDimension: Record<string, string> | null; biasDetected: boolean; agentA: string; agentB: string; votes: { model: string; member: string; dimension: string; orderAB: string; orderBA: string; reconciled: string; bias: boolean; droppedClaims: number }[] | null; task: string; run: number }[] | null;
  flipRate: number | null;
  primacy: number;
  recency: number;
  claim: string;
  sentence: string;
  obstacles: string[] | null;
  withheld?: Reason[];
  observed?: string;
  remark?: string;
  same?: boolean;
  requestDifferences?: { what: string; before?: string; after?: string; cause?: string; undeclared?: boolean }[];
  treatment?: Treatment;
  cost: Ratio | null;
  time: Ratio | null;
  turns: Ratio | null;
  retries?: { a: number; b: number; runsA: number; runsB: number; p: number };
  failedCalls?: { a: number; b: number; runsA: number; runsB: number; p: number };
  machines?: { workers: number; tasks: number; unlike?: { taskId: string; why: string }[] };
  milestones: { kind: string; both: number; censoredA: number; censoredB: number; deltaElapsedMs: number | null; deltaTurn: number | null }[] | null;
  order: { discordant: number; pairs: number };
  prompts: { a: string; b: string; labels: { label: string; status: string; bytesA: number; bytesB: number; added: number; removed: number; lines?: string[] }[] | null; prefixA?: string; prefixB?: string };
}

export interface PanelVerdict {
  dimension: string;
  result: string | null;
  share: number | null;
  pass: number;
  fail: number;
  abstained: number;
  missing?: number;
  promptHash: string;
  votes: PanelVote[] | null;
}

export interface PanelVote {
  result: string | null;
  confidence: number;
  critique: string;
  evidence: string[] | null;
  cited?: { file: string; line: number; text: string }[];
  dimension: string;
  model: string;
  promptHash: string;
  abstained: boolean;
  droppedClaims: number;
  member: string;
  reason?: string;
}

export interface Picture {
  n: number;
  block: number;
}

export interface Plan {
  id: string;
  seed: number;
  runs: number;
  tasks: string[];
  arms: { name: string; agent: string; agentVersion: string; model: string; hash: string; skills: string; profile: string }[];
  isolation: string;
  network: string;
  judge: string;
  family: string;
  origin: string;
  revision: string;
}

export interface Provenance {
  experiment: string;
  arm: string;
  armHash: string;
  familyRevision: string;
  agent: string;
  agentVersion?: string;
  model?: string;
  supervisor?: string;
  judge?: string;
  skillSetHash?: string;
  isolation?: string;
  network?: string;
  faults?: string;
}

export interface Ratio {
  all?: Factor;
  commonlySolved?: Factor;
  censored?: number;
}

export interface Reason {
  key: string;
  text: string;
  wayOut?: string;
  allow?: string;
}

export interface Report {
  version: number;
  groups: Group[];
  controls?: { arm: string; kind: string; passed: boolean; decision?: Decision; text: string }[];
  tasks: ReportTask[] | null;
  totals: Totals;
  sequential?: { alpha: number; looked: number; tasks: number; eValue: number | null; stopped: boolean };
  warnings?: string[];
  validity: string;
}

export interface ReportTask {
  taskId: string;
  cluster?: string;
  n: number;
  c: number;
  errors: number;
  missing: number;
  rate?: Interval;
  passAtK: Record<string, unknown> | null;
  passAtKInterval?: Record<string, Interval>;
  meanScore?: number;
  scoreAtK?: Record<string, unknown>;
  checks?: CheckRate[];
  agreement?: { votes: number; runs: number; unanimous: number; observed: number; alpha?: { value: number; se?: number; observed: number; expected: number; items: number }; kappa?: { value: number; se?: number; observed: number; expected: number; items: number }; effectiveVotes?: number };
  runs?: { runIndex: number; attempt: number; verdict: string; grade?: string; judge?: string; score?: number; costUsd: number | null; turns: number; durationMs: number; errorClass?: string; judgeSummary?: string; notes?: string[]; rows?: { check: string; source: string; pass?: boolean; gate?: boolean; message?: string }[]; agentTracePath?: string; diffPath?: string }[];
}

export interface RunningCell {
  task: string;
  arm: string;
  run: number;
  attempt: number;
  startMs: number;
  elapsedMs: number;
  where?: string;
  lastAction: string;
  lastActionMs: number;
  entries: number;
  stalled: boolean;
  trace: string;
}

export interface SkillAssertion {
  case: string;
  name: string;
  text: string;
  shown?: string;
  without: { passed: number; runs: number };
  with: { passed: number; runs: number };
  reading: string;
}

export interface SkillCase {
  id: string;
  prompt: string;
  expected?: string;
  labels?: Record<string, string>;
  sentences?: { text: string; shown: string }[];
  silent?: boolean;
  feedback?: string;
  assertions: SkillAssertion[];
  runs: SkillRun[];
}

export interface SkillRow {
  text: string;
  pass: boolean | null;
  shown?: string;
  by?: string;
  evidence?: string[];
  why?: string;
}

export interface SkillRun {
  arm: string;
  run: number;
  verdict: string;
  rows: SkillRow[];
}

export interface SkillTest {
  version: number;
  skill: string;
  sentence: string;
  arms: string[];
  cases: SkillCase[];
  facts: string[];
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
  cancelled: number;
  held: { task: string; arm: string; run: number }[] | null;
  concurrency: number;
  budgetUsd: number | null;
  costUsd: number;
  unpriced: number;
  tokens: number;
  elapsedMs: number;
  burnUsdPerHour: number | null;
  leftMs: { est: number; lo: number; hi: number } | null;
  reason?: string;
  pid: number;
  controllable: boolean;
  running: RunningCell[] | null;
}

export interface Thread {
  id: string;
  title: string;
  state: "open" | "recessed" | "adjourned" | "failed";
  createdAt: number;
  askedIn?: string;
  trigger?: { kind: string; replies?: number; signal?: string; elapsed?: string };
  dueAt?: number;
  costUsd: number;
  runs: ThreadRun[];
  last: number;
}

export interface ThreadList {
  person: string;
  threads: Thread[];
}

export interface ThreadPost {
  n: number;
  role: "person" | "agent" | "outcome" | "end" | "notice";
  author: string;
  body: string;
  at: number;
  run?: string;
}

export interface ThreadRun {
  id: string;
  state: "queued" | "running" | "paused" | "ended";
  startedAt?: number;
  endedAt?: number;
  verdict?: string;
  costUsd: number;
  url?: string;
}

export interface ThreadView {
  thread: Thread;
  posts: ThreadPost[];
  doing: string;
}

export interface ToolTime {
  lane: string;
  name: string;
  index: number;
  startMs: number;
  endMs: number;
  isError: boolean;
}

export interface Totals {
  tasks: number;
  runs: number;
  skipped: number;
  planned: number;
  missing: number;
  unverifiedErrors?: number;
  retriedRuns?: number;
  failedCallRuns?: number;
  passed: number;
  disqualified?: number;
  tasksPassing: number;
  costUsd: number | null;
  knownCostUsd: number;
  originalCostUsd?: number;
  costPerPass?: Interval;
  tokens: { input: number; output: number; cacheRead: number; cacheWrite: number };
  medianDurationMs: number;
  medianTurns: number;
  attempts: number;
  estimatedCosts?: number;
  probes?: { replies: number; costUsd: number | null; knownCostUsd: number; tokens: { input: number; output: number; cacheRead: number; cacheWrite: number } };
}

export interface TraceFile {
  id: string;
  name: string;
  path: string;
  bytes: number;
  modifiedMs: number;
}

export interface TraceOverview {
  version: number;
  id: string;
  name: string;
  path: string;
  bytes: number;
  modifiedMs: number;
  live: boolean;
  indexing: boolean;
  entries: number | null;
  experiment: string;
  cell: CellId | null;
  verdict?: string;
  given?: Given;
  overview: { metadata: { timestamp: string | null; sessionId: string | null; model: string | null; claudeCodeVersion: string | null; tools: unknown; permissionMode: string | null }; summary: { result: string; isError: boolean; totalCostUsd: number | null; durationMs: number; numTurns: number; tokenUsage: { inputTokens: number; outputTokens: number; cacheReadInputTokens: number; cacheCreationInputTokens: number } | null; modelUsage: unknown }; turnCount: number; resultEventTurns: number | null; turnPopulations: { turnCount: string; resultEventTurns: string }; tools: { tool: string; count: number }[] | null; taskPrompt: string | null; verdict?: string; closing?: string; discussionId?: string; turns: number; lanes: Member[] | null; problems: { skippedLines: number; torn?: boolean; noEnd?: boolean; brokenBlocks?: number; droppedDeltas?: number; first?: { line: number; reason: string }[] } } | null;
  cost: unknown;
  stats: { totals: unknown; modelUsage: unknown; divergence: { field: string; perMessageSum: number; resultEventSum: number } | null } | null;
}

export interface Treatment {
  arms: { arm: string; runs: number; context: Record<string, number> | null; unrecorded?: number; unknown?: Record<string, number>; notDelivered?: number }[] | null;
  pieces?: { kind: string; name: string; from: string; differs?: boolean; arms: { arm: string; runs: number; whole: number; part?: number; name?: number; absent?: number; unknown?: number; why?: Record<string, number>; digests?: string[]; opened?: { runs: number; passed: number; passRate?: Interval; notRandomised: boolean }; unopened?: { runs: number; passed: number; passRate?: Interval; notRandomised: boolean }; openedRate?: Interval }[] | null }[];
  lines?: string[];
}

export interface VersusCell {
  task: string;
  agent: string;
  arm: string;
  run: number;
  status: string;
  resolved: boolean | null;
  verdict: string;
  failedChecks: { check: string; source: string; pass?: boolean; gate?: boolean; message?: string }[] | null;
  cause?: { class: string; cause?: string; message: string; wayOut?: string; runs: number };
  agentError?: string;
  costUsd: number | null;
  directory: string;
  tracePath: string;
  rubric: { correctness: number | null; completeness: number | null; codeQuality: number | null; minimalDiff: number | null; verification: number | null };
  judged: Record<string, number> | null;
  perDimension: Record<string, number> | null;
  blended: number | null;
  coverage: number;
  usage: { inputTokens: number; outputTokens: number; cacheReadTokens: number; cacheWriteTokens: number; cacheWriteLongTokens?: number; totalTokens: number; costUsd: number | null; costSource: string; partial?: boolean };
  wallClockMs: number;
  turns: number;
  exitCode: number;
  milestones: Milestone[] | null;
  diff: { files: number; added: number; removed: number; generated?: number };
  errors: { category: string; tier: string; method: string; confidence: number; evidence: string[] | null; tags: string[] | null }[] | null;
  integrity: { kind: string; evidence: string; severity: string; file?: string; line?: number; seq?: number; rawLine?: number; suspected?: boolean; cleared?: { by: string; reason: string; atMs: number } }[] | null;
  verdicts: PanelVerdict[] | null;
  droppedClaims: number;
  unseen: string[] | null;
  treatment?: Given;
  problem?: string;
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
