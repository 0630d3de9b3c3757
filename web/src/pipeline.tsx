// The pipeline: sources left, steps, views and sinks right; the panel tells of the node that is selected.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ago, count, rate } from "./format";
import { folded, laid, short } from "./graph";
import { Panel } from "./panel";
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
  if (step.kind === "late" || step.kind === "dead") return { text: `${count(step.in)} kept`, warn: false };
  if (job.held && job.held_by?.split("/")[0] === step.name) {
    return { text: `${job.held_by.split("/")[1]} silent for ${ago(job.held_since, now.value)}`, warn: true };
  }
  if (step.kind === "stream") return { text: job.watermark && step.rule ? `${ago(job.watermark, now.value)} behind` : `${count(step.in)} in`, warn: false };
  if (step.state_rows !== null) return { text: `${count(step.state_rows)} rows`, warn: false };
  if (step.kind === "view" || step.kind === "sink") return { text: step.changed_at ? `fresh ${ago(step.changed_at, now.value)}` : "nothing yet", warn: false };
  return { text: `${count(step.in)} in`, warn: false };
}

function Node(props: { step: Step; job: Job; x: number; y: number }) {
  const { step, job } = props;
  const told = aside(step, job);
  const bad = (step.kind === "late" || step.kind === "dead") && step.in > 0;
  const classes = ["node", place.value.selected === step.name ? "on" : "", told.warn ? "warn" : "", bad ? "bad" : ""].join(" ");
  return (
    <a class={classes} href={link({ selected: step.name })} style={{ left: `${props.x}px`, top: `${props.y}px` }} data-node={step.name}>
      <strong title={step.name}>{short(step)}</strong>
      <span class="row head">
        <small title={step.does}>{step.kind === "operator" || step.kind === "step" ? step.does : KINDS[step.kind]}</small>
        {job.steps.length <= MOVING && <Spark values={step.history} />}
      </span>
      <span class="row">
        <span>{bad ? "" : rate(through(step))}</span>
        {told.warn ? <b class="warn">{told.text}</b> : <span>{told.text}</span>}
      </span>
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
        const side = target?.kind === "late" || target?.kind === "dead";
        const bad = side && (target?.in ?? 0) > 0;
        const slow = behind && steps.get(from)?.kind === "stream" && !side;
        return (
          <g key={`${from}>${to}`}>
            <path class={bad ? "edge late" : slow ? "edge warn" : "edge"} d={path} stroke-width={side ? 1 : 1 + Math.min(5, Math.log10(1 + flowing))} />
            {flowing > 0 && !side && layout.edges.length <= MOVING && (
              <path class="flow" d={path} style={{ animationDuration: `${Math.max(0.15, 1.2 / (1 + Math.log10(1 + flowing))).toFixed(1)}s` }} />
            )}
          </g>
        );
      })}
    </svg>
  );
}

// A graph that is a little too wide is drawn a little smaller; one that is much too wide scrolls.
function useFit(width: number): [{ current: HTMLDivElement | null }, number] {
  const room = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(1);
  useEffect(() => {
    const element = room.current;
    if (!element) return undefined;
    const fit = (): void => setScale(element.clientWidth >= 600 ? Math.max(0.8, Math.min(1, element.clientWidth / width)) : 1);
    const watch = new ResizeObserver(fit);
    watch.observe(element);
    fit();
    return () => watch.disconnect();
  }, [width]);
  return [room, scale];
}

export function PipelineScreen(props: { job: Job }) {
  const job = { ...props.job, steps: folded(props.job.steps) };
  const shape = job.steps.map((step) => `${step.name}<${step.reads.join()}`).join(";");
  const layout = useMemo(() => laid(job.steps), [shape]);
  const steps = new Map(job.steps.map((step) => [step.name, step]));
  const selected = steps.get(place.value.selected) ?? job.steps.find((step) => step.kind === "view") ?? job.steps[0];
  const [room, scale] = useFit(layout.width);
  return (
    <div class="split">
      <div ref={room} tabIndex={0} role="region" aria-label="pipeline graph" class="canvas">
        <div class="graph" style={{ width: `${layout.width}px`, height: `${layout.height}px`, transform: scale < 1 ? `scale(${scale})` : "none", marginRight: scale < 1 ? `${layout.width * (scale - 1)}px` : "auto" }}>
          <Edges job={job} layout={layout} steps={steps} />
          {job.steps.map((step) => {
            const at = layout.nodes.get(step.name);
            return at && <Node key={step.name} step={step} job={job} x={at.x} y={at.y} />;
          })}
        </div>
      </div>
      <aside tabIndex={0} aria-label="selected">
        {selected && <Panel key={selected.name} step={selected} job={job} />}
      </aside>
    </div>
  );
}
