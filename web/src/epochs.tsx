// Epochs: how long each took, by phase, what came in, crashes and restarts, and the identity that shows that nothing was lost.

import { Accounting, Identity, total } from "./accounting";
import { Crash, Interruptions } from "./crash";
import { bytes, clock, count, moment, one, seconds } from "./format";
import { Grid } from "./rows";
import type { Epoch, Interruption, Job, Row } from "./types";

const PHASES = ["commit", "compute", "plan", "look"] as const;
const WORDS: Record<(typeof PHASES)[number], string> = { look: "look for records", plan: "plan", compute: "compute", commit: "commit" };

// The share of each phase of an epoch; one whose phases nobody measured has one part.
function Parts(props: { epoch: Epoch }) {
  const { phases } = props.epoch;
  const whole = phases ? PHASES.reduce((sum, phase) => sum + phases[phase], 0) : 0;
  if (!phases || whole <= 0) return <i class="whole" style={{ height: "100%" }} />;
  return (
    <>
      {PHASES.map((phase) => (
        <i key={phase} class={phase} style={{ height: `${(100 * phases[phase]) / whole}%` }} />
      ))}
    </>
  );
}

function told(epoch: Epoch): string {
  const parts = [`epoch ${count(epoch.epoch)}: ${seconds(epoch.seconds)}`, `${count(epoch.in)} records`];
  for (const phase of [...PHASES].reverse()) if (epoch.phases) parts.push(`${WORDS[phase]} ${seconds(epoch.phases[phase])}`);
  if (epoch.late) parts.push(`${count(epoch.late)} late`);
  if (epoch.dead_letter) parts.push(`${count(epoch.dead_letter)} dead letters`);
  return parts.join(", ");
}

function Strip(props: { epochs: Epoch[]; interruptions: Interruption[] }) {
  // One epoch after a crash may take a hundred times as long as the others, which are to be told apart still.
  const sorted = props.epochs.map((epoch) => epoch.seconds ?? 0).sort((one, other) => one - other);
  const longest = Math.max(Math.min(sorted[sorted.length - 1] ?? 0, 4 * (sorted[Math.floor(sorted.length / 2)] ?? 0)), 0.001);
  const cuts = new Map(props.interruptions.map((found) => [found.epoch, found]));
  const [first, last] = [props.epochs[0], props.epochs[props.epochs.length - 1]];
  return (
    <>
      <div class="strip" role="img" aria-label="how long each epoch took; a gap with a red line is a crash">
        {props.epochs.map((epoch) => (
          <>
            <span key={epoch.epoch} title={told(epoch)} style={{ height: `${Math.min(100, Math.max(3, (100 * (epoch.seconds ?? 0)) / longest))}%` }}>
              <Parts epoch={epoch} />
              {epoch.late + epoch.dead_letter > 0 && <em />}
            </span>
            {cuts.has(epoch.epoch) && <u key={`cut ${epoch.epoch}`} title={`${cuts.get(epoch.epoch)?.how} after epoch ${epoch.epoch}`} />}
          </>
        ))}
      </div>
      <p class="soft">
        Epochs {count(first?.epoch)} to {count(last?.epoch)}, committed from {clock(first?.committed_at)} to {clock(last?.committed_at)} UTC. The full height is {seconds(longest)}.
      </p>
    </>
  );
}

function State(props: { job: Job }) {
  const kept = props.job.steps.filter((step) => step.state_rows !== null);
  if (!kept.length) return <p class="soft">No step of this job keeps state.</p>;
  const rows = kept.map((step) => ({ step: step.name, rows: step.state_rows, size: bytes(step.state_bytes), bound: step.bound }));
  return <Grid columns={["step", "rows", "size", "bound"]} rows={rows as unknown as Row[]} label="state" />;
}

export function EpochsScreen(props: { job: Job }) {
  const { job } = props;
  const rows = [...job.epochs].reverse().map((epoch) => ({
    epoch: epoch.epoch,
    committed: moment(epoch.committed_at),
    takes: seconds(epoch.seconds),
    look: seconds(epoch.phases?.look),
    plan: seconds(epoch.phases?.plan),
    compute: seconds(epoch.phases?.compute),
    commit: seconds(epoch.phases?.commit),
    in: epoch.in,
    late: epoch.late,
    duplicate: epoch.duplicate,
    filtered: epoch.filtered,
    "dead letters": epoch.dead_letter,
  }));
  if (!rows.length) {
    return (
      <div class="page">
        <p class="soft">
          No epoch with records is committed yet. Send some records: <code>headrace produce</code>
        </p>
        <Crash job={job} />
        <Interruptions job={job} />
      </div>
    );
  }
  return (
    <div class="page">
      <h2>Epochs</h2>
      <p class="soft legend">
        Each bar is an epoch, its height how long it took:
        {[...PHASES].reverse().map((phase) => (
          <span key={phase} class="key">
            <i class={phase} /> {WORDS[phase]}
          </span>
        ))}
        {job.epochs.some((epoch) => epoch.phases === null) && (
          <span class="key">
            <i class="whole" /> phases not measured
          </span>
        )}
        <span class="key">
          <em /> had late records or dead letters
        </span>
        <span class="key">
          <u /> crash
        </span>
      </p>
      <Strip epochs={job.epochs} interruptions={job.interruptions} />
      <h3>Accounting</h3>
      <Identity counts={total(job)} name="total" />
      <p class="soft">
        Counted at the streams since the job began. An epoch whose counts do not add up is not committed. {one(job.restarts, "restart")} in this run.
      </p>
      <Crash job={job} />
      <Interruptions job={job} />
      <h3>Accounting by step</h3>
      <Accounting job={job} />
      <h3>State</h3>
      <State job={job} />
      <h3>The last epochs</h3>
      <Grid
        columns={Object.keys(rows[0] ?? {})}
        rows={rows.slice(0, 40) as unknown as Row[]}
        id={(row) => String(row["epoch"])}
        mark={(row) => (Number(row["late"]) + Number(row["dead letters"]) > 0 ? "late" : "")}
        label="the last epochs"
      />
    </div>
  );
}
