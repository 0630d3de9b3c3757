// Crash it, in development: kill the driver or a worker, and see the gap, the restore, and the accounting on both sides.

import { useState } from "preact/hooks";
import { Identity, difference, total } from "./accounting";
import { ago, clock, count, one, seconds } from "./format";
import { ask, trouble } from "./server";
import { development, now, role } from "./state";
import type { Interruption, Job } from "./types";

export function Crash(props: { job: Job }) {
  const { job } = props;
  const [said, setSaid] = useState("");
  if (!development.value) {
    return (
      <p class="soft">
        To crash a job on purpose and watch it recover, start the server for development: <code>headrace serve --development --operate</code>
      </p>
    );
  }
  async function kill(what: string): Promise<void> {
    try {
      const told = await ask<{ pid: number }>(`api/v1/jobs/${encodeURIComponent(job.name)}/crash`, { what });
      setSaid(`Killed the ${what}, process ${told.pid}, at epoch ${count(job.epoch)}.`);
    } catch (problem) {
      setSaid(trouble(problem));
    }
  }
  return (
    <div class="tools">
      <button class="danger" disabled={role.value !== "operate" || job.state !== "running"} onClick={() => void kill("driver")}>
        crash the driver
      </button>
      <button class="danger" disabled={role.value !== "operate" || job.state !== "running"} onClick={() => void kill("worker")}>
        crash a worker
      </button>
      <span role="status">{role.value === "operate" ? said || "SIGKILL, now. The job starts again by itself." : "This needs the token of the role operate."}</span>
    </div>
  );
}

function Phase(props: { name: string; children: string }) {
  return (
    <li>
      <span class="soft">{props.name}</span> {props.children}
    </li>
  );
}

function next(found: Interruption): string {
  if (!found.recovered) return `not yet, after ${ago(found.restarted_at, now.value)}`;
  const epoch = `epoch ${count(found.recovered_epoch ?? found.epoch + 1)}`;
  return found.recovered_at ? `${clock(found.recovered_at)}, ${epoch}` : epoch;
}

function Recovery(props: { found: Interruption; job: Job }) {
  const { found, job } = props;
  const gap = found.recovered_at && found.committed_at ? (Date.parse(found.recovered_at) - Date.parse(found.committed_at)) / 1000 : null;
  const outcome = !found.recovered ? ", recovering" : gap === null ? ", then exact again" : `: no epoch for ${seconds(gap)}, then exact again`;
  return (
    <article class="card" data-crash={found.epoch}>
      <h3>
        {found.how} after epoch {count(found.epoch)}
        {outcome}
      </h3>
      <ol class="phases">
        <Phase name="last commit">{`${clock(found.committed_at)}, epoch ${count(found.epoch)}`}</Phase>
        <Phase name="started again">{clock(found.restarted_at)}</Phase>
        <Phase name="next commit">{next(found)}</Phase>
      </ol>
      {found.before && (
        <>
          <span class="soft">At the crash, counted at the streams:</span>
          <Identity counts={found.before} name="before" />
        </>
      )}
      <span class="soft">Now:</span>
      <Identity counts={total(job)} name="after" />
    </article>
  );
}

export function Interruptions(props: { job: Job }) {
  const { job } = props;
  const last = job.interruptions[job.interruptions.length - 1];
  if (!last) return <p class="soft">No run of this job was killed or has failed.</p>;
  const lost = difference(total(job));
  return (
    <>
      <p>
        {one(job.interruptions.length, "interruption")};{" "}
        {lost ? <b class="bad">{one(lost, "record")} missing.</b> : <b>the last one lost nothing: every record that came in is accounted for.</b>}
      </p>
      <Recovery found={last} job={job} />
    </>
  );
}
