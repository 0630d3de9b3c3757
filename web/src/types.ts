// What the server tells.

export interface Step {
  name: string;
  kind: "stream" | "operator" | "step" | "view" | "sink" | "late" | "dead";
  does: string;
  reads: string[];
  columns: string;
  keeps: string;
  bound: string;
  topic: string;
  key: string[];
  in: number;
  out: number;
  late: number;
  duplicate: number;
  filtered: number;
  dead_letter: number;
  in_rate: number;
  out_rate: number;
  late_reason: string | null;
  dead_letter_reason: string | null;
  state_rows: number | null;
  state_bytes: number | null;
  window: { kind: string; size?: string; every?: number; begins?: number } | null;
  rule: Record<string, string | number | null> | null;
  history: number[];
  changed_at: string | null;
}

export interface Epoch {
  epoch: number;
  committed_at: string;
  seconds: number | null;
  in: number;
  out: number;
  late: number;
  duplicate: number;
  filtered: number;
  dead_letter: number;
  watermark: number | null;
  phases: Record<"look" | "plan" | "compute" | "commit", number> | null;
}

export interface Reach {
  stream: string;
  partition: number;
  latest: string;
  seen_at: string;
  watermark: string;
  idle: boolean;
  holds: boolean;
}

export type Counts = Record<"in" | "out" | "late" | "duplicate" | "filtered" | "dead_letter", number>;

export interface Interruption {
  how: "killed" | "failed";
  epoch: number;
  committed_at: string | null;
  restarted_at: string;
  before: Counts | null;
  recovered: boolean;
  recovered_epoch: number | null;
  recovered_at: string | null;
}

export interface Job {
  name: string;
  state: string;
  since: string | null;
  last_error: string | null;
  epoch: number;
  epoch_seconds: number | null;
  in_rate: number;
  out_rate: number;
  lag: number | null;
  lag_seconds: number | null;
  watermark: string | null;
  held_by: string | null;
  held: boolean;
  held_since: string | null;
  partitions: Reach[];
  late: number;
  dead_letter: number;
  late_minute: number;
  dead_letter_minute: number;
  restarts: number;
  interruptions: Interruption[];
  steps: Step[];
  epochs: Epoch[];
  told_at: string;
}

export interface View {
  name: string;
  job: string;
  columns: string;
  key: string[];
  rows: number | null;
  epoch: number;
  ready: boolean;
}

export interface Partition {
  partition: number;
  start: number;
  end: number;
  segments: number;
  bytes: number;
  max_event_time: string | null;
}

export interface Topic {
  name: string;
  columns: string;
  key: string[];
  time: string | null;
  config: Record<string, string | number>;
  partitions: Partition[];
}

export type Row = Record<string, unknown>;

export interface Arrival {
  time: number;
  arrived: number;
  partition: number;
  offset: number;
  late: boolean;
}

export interface Finding {
  rule: string;
  fact: string;
  since: string | null;
  why: string | null;
  remedy: string | null;
  step: string | null;
  wrong: boolean;
}

export interface Health {
  healthy: boolean;
  findings: Finding[];
  rules: { rule: string; watches: string }[];
  alerts?: Alerts;
}

export interface Alerts {
  firing: number;
  alerts: { name: string; condition: string; for: string; message: string | null; state: "firing" | "pending" | "ok"; since: string | null; facts: Record<string, unknown> }[];
}
