// The accounting: what became of every record, step by step. A step whose counts do not add up stops the job.

import { count } from "./format";
import type { Counts, Job } from "./types";

const ENDS = ["out", "late", "duplicate", "filtered", "dead_letter"] as const;
const TITLES: Record<(typeof ENDS)[number], string> = { out: "out", late: "late", duplicate: "duplicate", filtered: "filtered", dead_letter: "dead letters" };

export function difference(counts: Counts): number {
  return counts.in - ENDS.reduce((sum, end) => sum + counts[end], 0);
}

export function Identity(props: { counts: Counts; name: string }) {
  const { counts } = props;
  const missing = difference(counts);
  return (
    <p class="identity" data-identity={props.name} data-missing={missing}>
      {count(counts.in)} in = {ENDS.map((end) => `${count(counts[end])} ${TITLES[end]}`).join(" + ")}
      <b class={missing ? "bad" : ""}>{missing ? `  ${count(missing)} missing` : "  nothing missing"}</b>
    </p>
  );
}

export function total(job: Job): Counts {
  const streams = job.steps.filter((step) => step.kind === "stream");
  const sum = (name: keyof Counts): number => streams.reduce((so, step) => so + step[name], 0);
  return { in: sum("in"), out: sum("out"), late: sum("late"), duplicate: sum("duplicate"), filtered: sum("filtered"), dead_letter: sum("dead_letter") };
}

export function Accounting(props: { job: Job }) {
  const steps = props.job.steps.filter((step) => step.kind !== "late" && step.kind !== "dead");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="accounting by step">
      <table>
        <thead>
          <tr>
            <th>step</th>
            <th class="n">in</th>
            {ENDS.map((end) => (
              <th key={end} class="n">
                {TITLES[end]}
              </th>
            ))}
            <th class="n">missing</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <tr key={step.name}>
              <td title={step.name}>{step.name}</td>
              <td class="n">{count(step.in)}</td>
              {ENDS.map((end) => (
                <td key={end} class={`n ${(end === "late" || end === "dead_letter") && step[end] ? "bad" : ""}`}>
                  {count(step[end])}
                </td>
              ))}
              <td class={`n ${difference(step) ? "bad" : ""}`}>{count(difference(step))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
