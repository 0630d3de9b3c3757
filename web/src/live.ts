// The rows of a view as they change, coalesced to one drawing a frame; the last epochs can be looked at again.

import { useEffect, useRef, useState } from "preact/hooks";
import { written } from "./json";
import { listen } from "./server";
import type { Row } from "./types";

const MOST = 2000;
// So many changed rows can be taken back, to show the view as of an epoch before.
const UNDONE = 20_000;
const BUSY = 40;

interface Told {
  type: "snapshot" | "changes" | "progress";
  epoch: number;
  first?: boolean;
  rows?: Row[];
  changes?: { op: string; row: Row }[];
}

interface Undo {
  epoch: number;
  before: [string, Row | undefined][];
}

export interface Live {
  rows: Map<string, Row>;
  changed: Map<string, { at: number; times: number }>;
  epoch: number;
  connected: boolean;
  more: boolean;
  undo: Undo[];
  undone: number;
  busy: boolean;
}

function fresh(): Live {
  return { rows: new Map(), changed: new Map(), epoch: 0, connected: false, more: false, undo: [], undone: 0, busy: false };
}

export function nameOf(row: Row, key: string[]): string {
  return written(key.map((column) => row[column]));
}

// The view as it was when an epoch was committed, by taking back what came since.
export function asOf(live: Live, epoch: number): Map<string, Row> {
  const rows = new Map(live.rows);
  for (let at = live.undo.length - 1; at >= 0; at--) {
    const undo = live.undo[at] as Undo;
    if (undo.epoch <= epoch) break;
    for (const [name, row] of [...undo.before].reverse()) {
      if (row === undefined) rows.delete(name);
      else rows.set(name, row);
    }
  }
  return rows;
}

function take(live: Live, told: Told, key: string[]): void {
  if (told.type === "snapshot" && told.first) {
    live.rows.clear();
    live.undo = [];
    live.undone = 0;
  }
  const before: Undo["before"] = [];
  const put = (row: Row, changed: boolean): void => {
    const name = nameOf(row, key);
    if (!live.rows.has(name) && live.rows.size >= MOST) {
      live.more = true;
      return;
    }
    if (changed) {
      before.push([name, live.rows.get(name)]);
      live.changed.set(name, { at: performance.now(), times: (live.changed.get(name)?.times ?? 0) + 1 });
    }
    live.rows.set(name, row);
  };
  for (const row of told.rows ?? []) put(row, false);
  for (const change of told.changes ?? []) {
    if (change.op !== "delete") put(change.row, true);
    else {
      const name = nameOf(change.row, key);
      before.push([name, live.rows.get(name)]);
      live.rows.delete(name);
      live.changed.delete(name);
    }
  }
  if (before.length) {
    live.undo.push({ epoch: told.epoch, before });
    live.undone += before.length;
    while (live.undone > UNDONE && live.undo.length > 1) live.undone -= live.undo.shift()?.before.length ?? 0;
  }
  live.epoch = told.epoch;
  if (told.changes) live.busy = told.changes.length > BUSY;
}

export function useLive(view: string, key: string[]): Live {
  const held = useRef<Live>(fresh());
  const [, draw] = useState(0);
  useEffect(() => {
    const live = (held.current = fresh());
    let waiting = 0;
    const soon = (): void => {
      waiting ||= requestAnimationFrame(() => {
        waiting = 0;
        draw((number) => number + 1);
      });
    };
    const close = listen<Told>(`api/v1/views/${encodeURIComponent(view)}`, ["snapshot", "changes", "progress"], {
      message(told) {
        live.connected = true;
        take(live, told, key);
        soon();
      },
      state(up) {
        live.connected = up;
        soon();
      },
    });
    return () => {
      close();
      cancelAnimationFrame(waiting);
    };
  }, [view, key.join()]);
  return held.current;
}
