// The place of every node: sources on the left, views and sinks on the right.

import dagre from "@dagrejs/dagre";
import type { Step } from "./types";

export const WIDTH = 160;
export const HEIGHT = 74;

// What a step adds to the name of what it reads: long chains have long names.
export function short(step: Step): string {
  const before = step.reads.find((name) => step.name.startsWith(`${name}.`));
  return before && step.kind !== "late" && step.kind !== "dead" ? step.name.slice(before.length + 1) : step.name;
}

// A step that only prepares another on each shard is part of that one.
export function folded(steps: Step[]): Step[] {
  const parts = new Map(steps.filter((step) => step.name.endsWith(".shards")).map((step) => [step.name, step]));
  const whole = steps.filter((step) => !parts.has(step.name));
  return parts.size ? whole.map((step) => ({ ...step, reads: step.reads.flatMap((name) => parts.get(name)?.reads ?? [name]) })) : steps;
}

export interface Laid {
  nodes: Map<string, { x: number; y: number }>;
  edges: { from: string; to: string; path: string }[];
  width: number;
  height: number;
}

export function laid(steps: Step[]): Laid {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 26, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const step of steps) graph.setNode(step.name, { width: WIDTH, height: HEIGHT });
  for (const step of steps) for (const before of step.reads) if (graph.hasNode(before)) graph.setEdge(before, step.name);
  dagre.layout(graph);
  const nodes = new Map<string, { x: number; y: number }>();
  for (const step of steps) {
    const found = graph.node(step.name) as { x: number; y: number };
    nodes.set(step.name, { x: found.x - WIDTH / 2, y: found.y - HEIGHT / 2 });
  }
  const edges = graph.edges().map(({ v, w }: { v: string; w: string }) => ({ from: v, to: w, path: curve(nodes.get(v), nodes.get(w)) }));
  const size = graph.graph() as { width?: number; height?: number };
  return { nodes, edges, width: size.width ?? 0, height: size.height ?? 0 };
}

function curve(from: { x: number; y: number } | undefined, to: { x: number; y: number } | undefined): string {
  if (!from || !to) return "";
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}
