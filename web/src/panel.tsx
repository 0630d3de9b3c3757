// The panel of a selected node: what it is in words, freshness, what became of its records, its rows live, its schema.

import { useState } from "preact/hooks";
import { Copies } from "./copies";
import { ago, bytes, clock, count, local, rate } from "./format";
import { LiveRows, RecordRows } from "./rows";
import { link, now } from "./state";
import type { Job, Step } from "./types";

const ENDS: [keyof Step & string, string][] = [
  ["out", "out"],
  ["late", "late"],
  ["duplicate", "duplicate"],
  ["filtered", "filtered"],
  ["dead_letter", "dead letters"],
];
const TABS = ["rows", "schema", "metrics", "plan"] as const;

function share(part: number, whole: number): string {
  return whole > 0 && part > 0 ? ` (${((100 * part) / whole).toFixed(part / whole < 0.01 ? 2 : 0)} %)` : "";
}

// The columns of a declaration, as in "url string, price decimal(10,2), `two words` struct<a:int,b:map<string,int>>".
export function columnsOf(columns: string): [string, string][] {
  const parts: string[] = [];
  let [depth, from] = [0, 0];
  for (let at = 0; at < columns.length; at++) {
    const letter = columns[at];
    if (letter === "<" || letter === "(") depth++;
    else if (letter === ">" || letter === ")") depth--;
    else if (letter === "," && depth === 0) {
      parts.push(columns.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, columns.slice(from)]
    .map((part) => /^\s*(`[^`]+`|\S+)\s*(.*)$/s.exec(part))
    .filter((found) => found !== null)
    .map((found) => [(found[1] ?? "").replaceAll("`", ""), found[2] ?? ""]);
}

export function Schema(props: { columns: string; keys: string[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th>column</th>
          <th>type</th>
          <th>key</th>
        </tr>
      </thead>
      <tbody>
        {columnsOf(props.columns).map(([name, kind]) => (
          <tr key={name}>
            <td>{name}</td>
            <td>{kind}</td>
            <td>{props.keys.includes(name) ? "key" : ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Names(props: { names: string[] }) {
  return (
    <>
      {props.names.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <a href={link({ screen: "pipeline", selected: name })}>{name}</a>
        </span>
      ))}
    </>
  );
}

function Missed(props: { step: Step; job: Job }) {
  const { step, job } = props;
  const streams = job.steps.filter((other) => other.kind === "stream").map((other) => other.name);
  const stream = streams.find((name) => step.name === name || step.name.startsWith(`${name}.`)) ?? streams[0] ?? "";
  const to = (side: string): string => link({ screen: "late", selected: `${stream}.${side}` });
  if (step.kind === "late" || step.kind === "dead") {
    return (
      <>
        <dt>kept</dt>
        <dd class={step.in ? "bad" : ""}>
          <a class="plain" href={link({ screen: "late", selected: step.name })}>
            {count(step.in)} records
          </a>
        </dd>
      </>
    );
  }
  return (
    <>
      <dt>late</dt>
      <dd class={step.late ? "bad" : ""}>
        {step.late ? <a class="plain" href={to("late")}>{`${count(step.late)}${share(step.late, step.in)}`}</a> : "0"}
      </dd>
      <dt>errors</dt>
      <dd class={step.dead_letter ? "bad" : ""} title={step.dead_letter_reason ?? ""}>
        {step.dead_letter ? <a class="plain" href={to("dead")}>{`${count(step.dead_letter)} dead letters${share(step.dead_letter, step.in)}`}</a> : "0"}
      </dd>
    </>
  );
}

export function Panel(props: { step: Step; job: Job }) {
  const { step, job } = props;
  const [tab, setTab] = useState<(typeof TABS)[number]>("rows");
  const side = step.kind === "late" || step.kind === "dead";
  return (
    <>
      <h2>{step.name}</h2>
      <p class="soft">
        {step.does}
        {step.bound ? `. Keeps ${step.keeps}; bound: ${step.bound}.` : ""}
      </p>
      <dl>
        {!side && (
          <>
            <dt>in, out</dt>
            <dd>
              {rate(step.in_rate)}, {rate(step.out_rate)}
            </dd>
          </>
        )}
        {step.state_rows !== null && (
          <>
            <dt>state</dt>
            <dd>
              {count(step.state_rows)} rows, {bytes(step.state_bytes)}
            </dd>
          </>
        )}
        {step.changed_at && (
          <>
            <dt>freshness</dt>
            <dd title={local(step.changed_at)}>changed {ago(step.changed_at, now.value)} ago</dd>
          </>
        )}
        {step.window?.every && job.watermark && (
          <>
            <dt>next to close</dt>
            <dd>{nextToClose(step.window.every, step.window.begins ?? 0, job.watermark)}</dd>
          </>
        )}
        <Missed step={step} job={job} />
      </dl>
      <div class="tabs" role="tablist" aria-label="of the node">
        {TABS.map((name) => (
          <button key={name} role="tab" aria-selected={tab === name} class={tab === name ? "on" : ""} onClick={() => setTab(name)}>
            {name}
          </button>
        ))}
      </div>
      {tab === "rows" && <Rows step={step} job={job} />}
      {tab === "schema" && (step.columns ? <Schema columns={step.columns} keys={step.key} /> : <p class="soft">The columns of the stream, and the reason.</p>)}
      {tab === "metrics" && <Metrics step={step} />}
      {tab === "plan" && <Plan step={step} job={job} />}
    </>
  );
}

function nextToClose(every: number, begins: number, watermark: string): string {
  const mark = Date.parse(watermark);
  const start = Math.floor((mark - begins) / every) * every + begins;
  return `${clock(new Date(start).toISOString())}, at watermark ${clock(new Date(start + every).toISOString())}`;
}

function Rows(props: { step: Step; job: Job }) {
  const { step, job } = props;
  const view = step.kind === "view" ? step : job.steps.find((other) => other.kind === "view" && other.reads.includes(step.name));
  if (view) {
    return (
      <>
        {view !== step && (
          <p class="soft">
            Its rows, as the view <a href={link({ screen: "views", selected: view.name })}>{view.name}</a> has them:
          </p>
        )}
        <LiveRows view={view.name} viewKey={view.key} limit={50} />
        <div class="tools">
          <a href={link({ screen: "views", selected: view.name })}>open the view</a>
          <Copies view={view.name} />
        </div>
      </>
    );
  }
  if (step.topic) return <RecordRows topic={step.topic} />;
  return <p class="soft">Its rows pass on in memory. The steps behind it show what they become: see plan.</p>;
}

function Metrics(props: { step: Step }) {
  const { step } = props;
  return (
    <>
      <dl>
        <dt>in</dt>
        <dd>{count(step.in)} records</dd>
        {ENDS.map(([name, title]) => (
          <>
            <dt key={name}>{title}</dt>
            <dd>{count(step[name] as number)} records</dd>
          </>
        ))}
      </dl>
      <p class="identity">
        {count(step.in)} in = {ENDS.map(([name, title]) => `${count(step[name] as number)} ${title}`).join(" + ")}
      </p>
      {step.late_reason && <p class="soft">First late: {step.late_reason}</p>}
      {step.dead_letter_reason && <p class="soft">First dead letter: {step.dead_letter_reason}</p>}
      <p class="soft">
        Since the job began. All metrics for Prometheus: <a href="metrics">/metrics</a>
      </p>
    </>
  );
}

function Plan(props: { step: Step; job: Job }) {
  const { step, job } = props;
  const readers = job.steps.filter((other) => other.reads.includes(step.name)).map((other) => other.name);
  return (
    <dl>
      <dt>kind</dt>
      <dd>{step.kind}</dd>
      <dt>reads</dt>
      <dd>{step.reads.length ? <Names names={step.reads} /> : "–"}</dd>
      <dt>read by</dt>
      <dd>{readers.length ? <Names names={readers} /> : "–"}</dd>
      {step.keeps && (
        <>
          <dt>keeps</dt>
          <dd>{step.keeps}</dd>
        </>
      )}
      {step.bound && (
        <>
          <dt>bound</dt>
          <dd>{step.bound}</dd>
        </>
      )}
      {step.rule && (
        <>
          <dt>watermark</dt>
          <dd>{Object.entries(step.rule).filter(([, told]) => told !== null).map(([name, told]) => (name === "kind" ? String(told).toLowerCase() : `${name} ${told}`)).join(", ")}</dd>
        </>
      )}
    </dl>
  );
}
