// Time: each dot an event, across when it happened, down when it arrived; below the watermark it is late. Windows fill at the bottom.

import { useEffect, useRef, useState } from "preact/hooks";
import { useArrivals } from "./arrivals";
import type { Known } from "./arrivals";
import { ago, clock, count, local, one, seconds } from "./format";
import { written } from "./json";
import { ask } from "./server";
import { go, link, now, place } from "./state";
import { HEIGHT, paint } from "./timechart";
import type { Placed } from "./timechart";
import type { Arrival, Job, Row } from "./types";

const BACK = 600;

function Partitions(props: { job: Job; stream: string }) {
  const { job } = props;
  const mine = job.partitions.filter((reach) => reach.stream === props.stream);
  if (!mine.length) return <p class="soft">No partition of this stream has told a time yet.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="partitions">
      <table>
        <thead>
          <tr>
            <th>partition</th>
            <th>holds it</th>
            <th>latest event</th>
            <th>its watermark</th>
            <th>last seen</th>
          </tr>
        </thead>
        <tbody>
          {mine.map((reach) => (
            <tr key={reach.partition} class={reach.holds ? (job.held ? "held" : "on") : ""} data-holds={reach.holds ? reach.partition : undefined}>
              <td>
                {reach.stream}/{reach.partition}
              </td>
              <td>{reach.holds ? "yes, furthest behind" : reach.idle ? "no, idle" : "no"}</td>
              <td title={local(reach.latest)}>{clock(reach.latest)}</td>
              <td title={local(reach.watermark)}>{clock(reach.watermark)}</td>
              <td>{ago(reach.seen_at, now.value)} ago</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Missed(props: { known: Known; topic: string; onPick: (dot: Arrival) => void }) {
  const newest = props.known.late.slice(-5).reverse();
  if (!newest.length) return <p class="soft">{props.known.looked ? "No record was late." : "Loading."}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="late records">
      <table>
        <thead>
          <tr>
            <th>happened</th>
            <th>arrived</th>
            <th class="n">delay</th>
            <th>where it is</th>
          </tr>
        </thead>
        <tbody>
          {newest.map((dot) => (
            <tr key={`${dot.partition}/${dot.offset}`} class="late">
              <td>{clock(new Date(dot.time).toISOString())}</td>
              <td>{clock(new Date(dot.arrived).toISOString())}</td>
              <td class="n">{seconds((dot.arrived - dot.time) / 1000)}</td>
              <td>
                <button class="text" onClick={() => props.onPick(dot)}>
                  {props.topic}.late, partition {dot.partition}, offset {dot.offset}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function lateSince(known: Known, since: number): number {
  return known.late.filter((dot) => dot.arrived >= since).length;
}

export function TimeScreen(props: { job: Job }) {
  const { job } = props;
  const streams = job.steps.filter((step) => step.kind === "stream" && step.topic);
  const stream = streams.find((step) => step.name === place.value.selected) ?? streams[0];
  const topic = stream?.topic ?? "";
  const window = job.steps.find((step) => step.window?.every && step.name.startsWith(topic));
  const every = window?.window?.every ?? 0;
  const span = Math.min(3_600_000, Math.max(60_000, 5 * every));
  const known = useArrivals(job, topic, window, span);
  const canvas = useRef<HTMLCanvasElement>(null);
  const placed = useRef<Placed[]>([]);
  const [paused, setPaused] = useState(0);
  const [back, setBack] = useState(0);
  const [picked, setPicked] = useState<Row | null>(null);
  const holder = job.held_by?.startsWith(`${topic}/`) ? `${job.held ? "held by" : "from"} partition ${job.held_by.split("/")[1]}` : "";

  useEffect(() => {
    const draw = (): void => {
      if (!canvas.current) return;
      const until = (paused || Date.now()) - back * 1000;
      placed.current = paint(canvas.current, known.current, { until, span, every, holder, side: `${topic}.late` });
    };
    draw();
    const timer = setInterval(() => requestAnimationFrame(draw), paused ? 1000 : 200);
    return () => clearInterval(timer);
  }, [paused, back, topic, span, every, holder]);

  async function show(dot: Arrival): Promise<void> {
    const path = `api/v1/topics/${encodeURIComponent(dot.late ? `${topic}.late` : topic)}/records?partition=${dot.partition}&offset=${dot.offset}&limit=1`;
    const found = await ask<{ records: Row[] }>(path).catch(() => null);
    setPicked(found?.records[0] ?? null);
  }
  function pick(event: MouseEvent): void {
    const box = canvas.current?.getBoundingClientRect();
    if (!box) return;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [near, far] = [null as Placed | null, 12];
    for (const one of placed.current) {
      const distance = Math.hypot(one.x - x, one.y - y) - (one.dot.late ? 3 : 0);
      if (distance < far) [near, far] = [one, distance];
    }
    if (near) void show(near.dot);
  }

  if (!stream) {
    return (
      <p class="empty">
        This job reads no topic of the log, so its events cannot be shown one by one. The bar has its watermark; what waits for it: <code>headrace why</code>
      </p>
    );
  }
  const late = job.steps.find((step) => step.name === `${topic}.late`);
  return (
    <div class="page">
      <h2>Time of {stream.name}</h2>
      <p class="soft">
        Each dot is an event: across, when it happened; down, when it arrived. Below the line it is late: a red square.
        {every > 0 && " Boxes are windows; grey ones are closed."}
        {known.current.panes.size > 0 && " A tick in a box is a result: early, on time (tall), late (red)."}
      </p>
      <div class="tools">
        {streams.length > 1 &&
          streams.map((step) => (
            <button key={step.name} class={step.name === stream.name ? "on" : ""} onClick={() => go({ selected: step.name })}>
              {step.name}
            </button>
          ))}
        <button class={paused ? "on" : ""} aria-pressed={paused > 0} onClick={() => setPaused(paused ? 0 : Date.now())}>
          {paused ? "paused" : "pause"}
        </button>
        <label class="figure">
          {seconds(BACK)} ago
          <input
            type="range"
            aria-label="look back"
            aria-valuetext={back ? `${seconds(back)} ago` : "now"}
            min={-BACK}
            max={0}
            step={5}
            value={-back}
            onInput={(event) => setBack(-Number(event.currentTarget.value))}
          />
          {paused > 0 || back > 0 ? <span class="warn">as it was at {clock(new Date((paused || now.value) - back * 1000).toISOString())}</span> : "now"}
        </label>
        {(paused > 0 || back > 0) && (
          <button
            onClick={() => {
              setPaused(0);
              setBack(0);
            }}
          >
            live again
          </button>
        )}
        <span class="grow" />
        <span data-late-minute>
          <a class={late?.in ? "bad" : ""} href={link({ screen: "late", selected: `${stream.name}.late` })}>
            {known.current.looked
              ? `${one(lateSince(known.current, now.value - 60_000), "record")} late in the last minute, ${count(late?.in ?? 0)} in all, in ${stream.name}.late`
              : "Counting the late records."}
          </a>
        </span>
      </div>
      <canvas ref={canvas} height={HEIGHT} style={{ height: `${HEIGHT}px` }} role="img" aria-label="event time against arrival; the tables below say the same in words" onClick={pick} />
      {picked && (
        <div class="card">
          <h3>
            partition {String(picked["_partition"])}, offset {String(picked["_offset"])}{" "}
            <button class="text" onClick={() => setPicked(null)}>
              close
            </button>
          </h3>
          <pre>{written(picked, 2)}</pre>
        </div>
      )}
      <div class="columns">
        <section>
          <h3>Who holds the watermark</h3>
          <Partitions job={job} stream={stream.name} />
        </section>
        <section>
          <h3>The last late records</h3>
          <Missed known={known.current} topic={topic} onPick={(dot) => void show(dot)} />
        </section>
      </div>
    </div>
  );
}
