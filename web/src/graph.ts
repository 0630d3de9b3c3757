// The place of every node: sources on the left, views and sinks on the right, late records and dead letters below their stream.

import dagre from "@dagrejs/dagre";
import type { Step } from "./types";

export const HEIGHT = 84;
const [LEAST, MOST] = [148, 184];
const [APART, BETWEEN, MARGIN] = [24, 24, 16];

// What a step adds to the name of what it reads: long chains have long names.
export function short(step: Step): string {
  const before = step.reads.find((name) => step.name.startsWith(`${name}.`));
  return before && !side(step) ? step.name.slice(before.length + 1) : step.name;
}

export function side(step: Step | undefined): boolean {
  return step?.kind === "late" || step?.kind === "dead";
}

// A step that only prepares another on each shard is part of that one.
export function folded(steps: Step[]): Step[] {
  const parts = new Map(steps.filter((step) => step.name.endsWith(".shards")).map((step) => [step.name, step]));
  const whole = steps.filter((step) => !parts.has(step.name));
  return parts.size ? whole.map((step) => ({ ...step, reads: step.reads.flatMap((name) => parts.get(name)?.reads ?? [name]) })) : steps;
}

interface Point {
  x: number;
  y: number;
}

export interface Laid {
  nodes: Map<string, Point>;
  edges: { from: string; to: string; path: string }[];
  width: number;
  height: number;
  wide: number;
}

// Nodes are as wide as the room allows; where they would be too narrow to read, the graph scrolls.
export function laid(steps: Step[], room: number): Laid {
  const levels = new Set(placed(steps, LEAST).map(([, at]) => at.x)).size;
  const wide = Math.floor(Math.min(MOST, Math.max(LEAST, (room - 2 * MARGIN - (levels - 1) * BETWEEN) / Math.max(1, levels))));
  const nodes = new Map(placed(steps, wide));
  const edges = steps.flatMap((step) =>
    step.reads.filter((name) => nodes.has(name)).map((from) => ({ from, to: step.name, path: curve(nodes.get(from), nodes.get(step.name), wide) })),
  );
  const points = [...nodes.values()];
  return {
    nodes, edges, wide,
    width: Math.max(0, ...points.map((at) => at.x + wide)) + MARGIN,
    height: Math.max(0, ...points.map((at) => at.y + HEIGHT)) + MARGIN,
  };
}

function placed(steps: Step[], wide: number): [string, Point][] {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: APART, ranksep: BETWEEN, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const flow = steps.filter((step) => !side(step));
  for (const step of flow) graph.setNode(step.name, { width: wide, height: HEIGHT });
  for (const step of flow) for (const before of step.reads) if (graph.hasNode(before)) graph.setEdge(before, step.name);
  dagre.layout(graph);
  const found = flow.map((step): [string, Point] => {
    const at = graph.node(step.name) as Point;
    return [step.name, { x: Math.round(at.x - wide / 2), y: Math.round(at.y - HEIGHT / 2) }];
  });
  for (const step of steps.filter(side)) {
    const stream = found.find(([name]) => name === step.reads[0])?.[1];
    const x = (stream?.x ?? MARGIN) + (stream ? wide + BETWEEN : 0);
    const lowest = Math.max(stream?.y ?? 0, ...found.filter(([, at]) => Math.abs(at.x - x) < wide).map(([, at]) => at.y + HEIGHT + APART));
    found.push([step.name, { x, y: lowest }]);
  }
  return found;
}

function curve(from: Point | undefined, to: Point | undefined, wide: number): string {
  if (!from || !to) return "";
  const [x1, y1, x2, y2] = [from.x + wide, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}
