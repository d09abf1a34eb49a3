// The shape of the report of a head to head, as far as its page shows it.
import type { Ratio } from "./types";
import type { Range } from "./ui";

export interface Milestone {
  kind: string;
  turnIndex: number;
  elapsedMs: number;
}

export interface PanelVote {
  result: string | null;
  model: string;
  member?: string;
  critique: string;
  evidence: string[] | null;
  abstained: boolean;
  reason?: string;
}

export interface PanelVerdict {
  dimension: string;
  result: string | null;
  share: number | null;
  pass: number;
  fail: number;
  abstained: number;
  votes: PanelVote[] | null;
}

export interface VersusCell {
  task: string;
  agent: string;
  arm: string;
  run: number;
  status: string;
  resolved: boolean | null;
  blended: number | null;
  coverage: number;
  wallClockMs: number;
  turns: number;
  milestones: Milestone[] | null;
  diff: { files: number; added: number; removed: number };
  integrity: { kind: string; severity?: string }[] | null;
  verdicts: PanelVerdict[] | null;
  droppedClaims: number;
  problem?: string;
}

export interface AgentSummary {
  agent: string;
  arm: string;
  nRuns: number;
  planned: number;
  missing: number;
  disqualified: number;
  passRate: Range | null;
  blended: number | null;
  costUsd: number | null;
  efficiency: { wallClockMs: number | null; turns: number | null; costUsd: number | null; firstEditMs: number | null; greenMs: number | null };
  integrity: Record<string, number> | null;
}

export interface Pair {
  a: string;
  b: string;
  flipRate: number | null;
  primacy: number;
  recency: number;
  claim: string;
  sentence: string;
  obstacles: string[] | null;
  cost: Ratio | null;
  dimensions: { dimension: string; nTasks: number; observed: Range; corrected: Range | null; status: string; claim: string }[] | null;
  pairwise: { winner: string; task: string; run: number; biasDetected: boolean }[] | null;
  milestones: { kind: string; both: number; censoredA: number; censoredB: number; deltaElapsedMs: number | null; deltaTurn: number | null }[] | null;
}

export interface EvalReport {
  statement: string;
  isolation: string;
  sandbox: string;
  network?: string;
  agents: { id: string; arm: string; version: string; model: string }[] | null;
  tasks: { id: string }[] | null;
  cells: VersusCell[] | null;
  perAgent: AgentSummary[] | null;
  pairs: Pair[] | null;
  calibration: { dimension: string; status: string; reason?: string; tpr: number | null; tnr: number | null; labels: number }[] | null;
  panel: { models: string[] | null; nEff: number | null; errorCorrelation: number | null; mode: string; selfTest: boolean; missing: number };
  warnings: string[] | null;
}
