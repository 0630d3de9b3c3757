// What the Time screen knows: a sample of the newest events, all late ones, the watermark by the clock, and by window exact counts and
// the panes that were emitted.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./server";
import { columnsOf } from "./panel";
import type { Arrival, Job, Step, Topic } from "./types";

// How many dots are drawn, and over how many parts of the time they are spread.
const KEPT = 1800;
const PARTS = 300;
const EVERY = 500;

export interface Mark {
  at: number;
  watermark: number;
}

export interface Pane {
  kind: string;
  epoch: number;
  emitted: number;
  rows: number;
}

export interface Known {
  dots: Arrival[];
  late: Arrival[];
  marks: Mark[];
  windows: Map<number, number>;
  lateWindows: Map<number, number>;
  panes: Map<number, Pane[]>;
  parts: Map<number, number>;
  looked: boolean;
}

interface Answer {
  arrivals: Arrival[];
  next: Record<string, number>;
  windows: [number, number][];
}

function nothing(): Known {
  return { dots: [], late: [], marks: [], windows: new Map(), lateWindows: new Map(), panes: new Map(), parts: new Map(), looked: false };
}

function add(to: Map<number, number>, counts: [number, number][]): void {
  for (const [start, number] of counts) to.set(start, (to.get(start) ?? 0) + number);
  for (const start of [...to.keys()].sort((one, other) => one - other).slice(0, -60)) to.delete(start);
}

function addPanes(known: Known, told: [number, string, number, number, number][]): void {
  for (const [start, kind, epoch, emitted, rows] of told) {
    const panes = known.panes.get(start) ?? [];
    const before = panes.find((pane) => pane.kind === kind && pane.epoch === epoch);
    if (before) before.rows += rows;
    else panes.push({ kind, epoch, emitted, rows });
    known.panes.set(start, panes.slice(-40));
  }
  for (const start of [...known.panes.keys()].sort((one, other) => one - other).slice(0, -60)) known.panes.delete(start);
}

// The view that has the results of the windows, with a column that tells the panes apart.
export function panesOf(job: Job, window: Step | undefined): string {
  const view = job.steps.find((step) => step.kind === "view" && window && step.reads.includes(window.name) && step.topic);
  const columns = new Set(columnsOf(view?.columns ?? "").map(([name]) => name));
  return view && columns.has("pane") && columns.has("window_start") ? view.topic : "";
}

// As many dots for each part of the time of arrival, so that what is drawn keeps its shape.
function keep(known: Known, came: Arrival[], span: number): void {
  const part = span / PARTS;
  for (const dot of came) {
    const name = Math.floor(dot.arrived / part);
    const held = known.parts.get(name) ?? 0;
    if (held >= KEPT / PARTS) continue;
    known.parts.set(name, held + 1);
    known.dots.push(dot);
  }
}

export function useArrivals(job: Job, topic: string, window: Step | undefined, span: number): { current: Known } {
  const every = window?.window?.every ?? 0;
  const panes = panesOf(job, window);
  const held = useRef<Known>(nothing());
  const [, tell] = useState(0);
  const late = job.steps.find((step) => step.name === `${topic}.late`);
  const keepsLate = late !== undefined;
  useEffect(() => {
    const known = (held.current = nothing());
    if (!topic) return undefined;
    const next: Record<string, Record<string, number>> = {};
    let [gone, busy] = [false, false];
    async function come(of: string, time: string): Promise<Answer> {
      const since = encodeURIComponent(JSON.stringify(next[of] ?? {}));
      const told = await ask<Answer>(`api/v1/topics/${encodeURIComponent(of)}/arrivals?since=${since}&window=${every}${time ? `&time=${time}` : ""}`);
      next[of] = told.next;
      return told;
    }
    async function comePanes(): Promise<void> {
      const since = encodeURIComponent(JSON.stringify(next[`panes of ${panes}`] ?? {}));
      const told = await ask<{ panes: [number, string, number, number, number][]; next: Record<string, number> }>(`api/v1/topics/${encodeURIComponent(panes)}/panes?since=${since}`);
      next[`panes of ${panes}`] = told.next;
      addPanes(known, told.panes);
    }
    // Where the watermark was before somebody looked.
    void ask<[number, number][]>(`api/v1/jobs/${encodeURIComponent(job.name)}/watermarks`).then(
      (told) => {
        const first = known.marks[0]?.at ?? Infinity;
        known.marks.unshift(...told.filter(([at, mark]) => at < first && mark > 0).map(([at, watermark]) => ({ at, watermark })));
      },
      () => undefined,
    );
    let column: string | null = null;
    async function look(): Promise<void> {
      if (gone || busy) return;
      busy = true;
      try {
        column ??= (await ask<Topic>(`api/v1/topics/${encodeURIComponent(topic)}`)).time ?? "";
        const came = await come(topic, "");
        keep(known, came.arrivals, span);
        add(known.windows, came.windows);
        const oldest = Date.now() - 3 * span;
        if (known.dots.length && (known.dots[0]?.arrived ?? 0) < oldest) known.dots = known.dots.filter((dot) => dot.arrived >= oldest);
        if (keepsLate) {
          const missed = await come(`${topic}.late`, column);
          known.late = [...known.late, ...missed.arrivals.map((dot) => ({ ...dot, late: true }))].slice(-1000);
          add(known.lateWindows, missed.windows);
        }
        if (panes) await comePanes();
        known.looked = true;
        tell((number) => number + 1);
      } catch {
        // The server is away; the bar says so, and the next look goes on from where this one was.
      }
      busy = false;
    }
    void look();
    const timer = setInterval(() => void look(), EVERY);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [topic, keepsLate, every, panes]);
  useEffect(() => {
    const known = held.current;
    const seen = known.marks[known.marks.length - 1]?.at ?? 0;
    for (const epoch of job.epochs) {
      const at = Date.parse(epoch.committed_at);
      if (epoch.watermark !== null && epoch.watermark > 0 && at > seen) known.marks.push({ at, watermark: epoch.watermark });
    }
    if (known.marks.length > 2000) known.marks.splice(0, known.marks.length - 2000);
  }, [job.told_at, topic]);
  return held;
}
