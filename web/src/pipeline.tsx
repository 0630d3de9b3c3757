// The pipeline: sources left, steps, views and sinks right; the panel tells of the node that is selected.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { about, count, one, rate } from "./format";
import { folded, laid, short, side } from "./graph";
import { Panel } from "./panel";
import { useReveal } from "./reveal";
import { Spark } from "./spark";
import { link, now, place } from "./state";
import type { Job, Step } from "./types";

const KINDS: Record<Step["kind"], string> = {
  stream: "stream",
  operator: "step with state",
  step: "step",
  view: "view",
  sink: "sink",
  late: "late records",
  dead: "dead letters",
};
// With more nodes or edges than this nothing moves on its own: hundreds would cost every frame.
const MOVING = 60;

function through(step: Step): number {
  return step.kind === "stream" || step.kind === "operator" ? step.in_rate : step.out_rate;
}

function aside(step: Step, job: Job): { text: string; warn: boolean } {
  if (side(step)) return { text: `${one(step.in, "record")} kept`, warn: false };
  if (job.held && job.held_by?.split("/")[0] === step.name) {
    return { text: `${job.held_by.split("/")[1]} silent for ${about(job.held_since, now.value)}`, warn: true };
  }
  if (step.kind === "stream") return { text: job.watermark && step.rule ? `${about(job.watermark, now.value)} behind` : `${count(step.in)} in`, warn: false };
  if (step.state_rows !== null) return { text: `${count(step.state_rows)} rows`, warn: false };
  if (step.kind === "view" || step.kind === "sink") return { text: step.changed_at ? `fresh ${about(step.changed_at, now.value)}` : "nothing yet", warn: false };
  return { text: `${count(step.in)} in`, warn: false };
}

function Node(props: { step: Step; job: Job; at: { x: number; y: number }; wide: number }) {
  const { step, job, at, wide } = props;
  const told = aside(step, job);
  const bad = side(step) && step.in > 0;
  const classes = ["node", place.value.selected === step.name ? "on" : "", told.warn ? "warn" : "", bad ? "bad" : ""].join(" ");
  return (
    <a class={classes} href={link({ selected: step.name })} style={{ left: `${at.x}px`, top: `${at.y}px`, width: `${wide}px` }} data-node={step.name} aria-current={place.value.selected === step.name}>
      <strong title={step.name}>{short(step)}</strong>
      <small title={step.does}>{step.kind === "operator" || step.kind === "step" ? step.does : KINDS[step.kind]}</small>
      <span class="row">
        {side(step) ? "" : <span>{rate(through(step))}</span>}
        {told.warn ? <b class="warn">{told.text}</b> : <span>{told.text}</span>}
      </span>
      {job.steps.length <= MOVING && <Spark values={step.history} wide={wide - 18} />}
    </a>
  );
}

function Edges(props: { job: Job; layout: ReturnType<typeof laid>; steps: Map<string, Step> }) {
  const { layout, steps } = props;
  const behind = (props.job.lag_seconds ?? 0) > 10;
  return (
    <svg width={layout.width} height={layout.height} aria-hidden="true">
      {layout.edges.map(({ from, to, path }) => {
        const target = steps.get(to);
        const flowing = target ? Math.max(target.in_rate, 0) : 0;
        const beside = side(target);
        const bad = beside && (target?.in ?? 0) > 0;
        const slow = behind && steps.get(from)?.kind === "stream" && !beside;
        return (
          <g key={`${from}>${to}`}>
            <path class={bad ? "edge late" : slow ? "edge warn" : "edge"} d={path} stroke-width={beside ? 1 : 1 + Math.min(5, Math.log10(1 + flowing))} />
            {flowing > 0 && !beside && layout.edges.length <= MOVING && (
              <path class="flow" d={path} style={{ animationDuration: `${Math.max(0.15, 1.2 / (1 + Math.log10(1 + flowing))).toFixed(1)}s` }} />
            )}
          </g>
        );
      })}
    </svg>
  );
}

// How wide the place is in which the graph is drawn.
function useRoom(): [{ current: HTMLDivElement | null }, number] {
  const room = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(0);
  useLayoutEffect(() => {
    const element = room.current;
    if (!element) return undefined;
    const measure = (): void => setWide(element.clientWidth);
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    measure();
    return () => watch.disconnect();
  }, []);
  return [room, wide];
}

export function PipelineScreen(props: { job: Job }) {
  const job = { ...props.job, steps: folded(props.job.steps) };
  const shape = job.steps.map((step) => `${step.name}<${step.reads.join()}`).join(";");
  const [room, wide] = useRoom();
  const panel = useReveal<HTMLElement>(place.value.selected);
  const layout = useMemo(() => laid(job.steps, wide), [shape, wide]);
  const steps = new Map(job.steps.map((step) => [step.name, step]));
  const selected = steps.get(place.value.selected) ?? job.steps.find((step) => step.kind === "view") ?? job.steps[0];
  return (
    <div class="split">
      <div ref={room} tabIndex={0} role="region" aria-label="pipeline graph" class="canvas">
        <div class="graph" style={{ width: `${layout.width}px`, height: `${layout.height}px` }}>
          <Edges job={job} layout={layout} steps={steps} />
          {job.steps.map((step) => {
            const at = layout.nodes.get(step.name);
            return at && <Node key={step.name} step={step} job={job} at={at} wide={layout.wide} />;
          })}
        </div>
      </div>
      <aside ref={panel} tabIndex={0} aria-label="selected">
        {selected && <Panel key={selected.name} step={selected} job={job} />}
      </aside>
    </div>
  );
}
