// What the Time screen knows: a sample of the newest events, all late ones, the watermark by the clock, and exact counts by window.

import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "./server";
import type { Arrival, Job, Topic } from "./types";

// How many dots are drawn, and over how many parts of the time they are spread.
const KEPT = 1800;
const PARTS = 300;
const EVERY = 500;

export interface Mark {
  at: number;
  watermark: number;
}

export interface Known {
  dots: Arrival[];
  late: Arrival[];
  marks: Mark[];
  windows: Map<number, number>;
  lateWindows: Map<number, number>;
  parts: Map<number, number>;
  looked: boolean;
}

interface Answer {
  arrivals: Arrival[];
  next: Record<string, number>;
  windows: [number, number][];
}

function nothing(): Known {
  return { dots: [], late: [], marks: [], windows: new Map(), lateWindows: new Map(), parts: new Map(), looked: false };
}

function add(to: Map<number, number>, counts: [number, number][]): void {
  for (const [start, number] of counts) to.set(start, (to.get(start) ?? 0) + number);
  for (const start of [...to.keys()].sort((one, other) => one - other).slice(0, -60)) to.delete(start);
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

export function useArrivals(job: Job, topic: string, every: number, span: number): { current: Known } {
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
    let column: string | null = null;
    async function look(): Promise<void> {
      if (gone || busy) return;
      busy = true;
      try {
        column ??= (await ask<Topic>(`api/v1/topics/${encodeURIComponent(topic)}`)).time ?? "";
        const came = await come(topic, "");
        known.looked = true;
        keep(known, came.arrivals, span);
        add(known.windows, came.windows);
        const oldest = Date.now() - 3 * span;
        if (known.dots.length && (known.dots[0]?.arrived ?? 0) < oldest) known.dots = known.dots.filter((dot) => dot.arrived >= oldest);
        if (keepsLate) {
          const missed = await come(`${topic}.late`, column);
          known.late = [...known.late, ...missed.arrivals.map((dot) => ({ ...dot, late: true }))].slice(-1000);
          add(known.lateWindows, missed.windows);
        }
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
  }, [topic, keepsLate, every]);
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
