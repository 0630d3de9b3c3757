// Health: a card for each rule that fires, with fact, since when, why and remedy; below them the rules that are fine.

import { local, moment, one, value } from "./format";
import { NARROW } from "./reveal";
import { Grid } from "./rows";
import { health, link } from "./state";
import type { Screen } from "./state";
import type { Alerts, Finding, Job } from "./types";

const SEE: Record<string, [Screen, string]> = {
  late: ["late", "the late records"],
  "dead letters": ["late", "the dead letters, to fix and send again"],
  "watermark held": ["time", "the partitions and their time"],
  "window open": ["time", "the windows as they fill"],
  "no input": ["topics", "the topics"],
};

function Card(props: { finding: Finding }) {
  const { finding } = props;
  return (
    <article class={finding.wrong ? "card wrong" : "card"} data-rule={finding.rule}>
      <h3>
        {finding.rule} {!finding.wrong && <span class="soft">explains a wait, nothing is wrong</span>}
      </h3>
      <p>{finding.fact}</p>
      <dl class="wide">
        {finding.since && (
          <>
            <dt>since</dt>
            <dd title={local(finding.since)}>{moment(finding.since)} UTC</dd>
          </>
        )}
        {finding.why && (
          <>
            <dt>why</dt>
            <dd>{finding.why}</dd>
          </>
        )}
        {finding.remedy && (
          <>
            <dt>remedy</dt>
            <dd>{finding.remedy}</dd>
          </>
        )}
        {SEE[finding.rule] && (
          <>
            <dt>see</dt>
            <dd>
              <a href={link({ screen: SEE[finding.rule]?.[0] ?? "health", selected: "" })}>{SEE[finding.rule]?.[1]}</a>
            </dd>
          </>
        )}
        {finding.step && (
          <>
            <dt>where</dt>
            <dd>
              <a href={link({ screen: "pipeline", selected: finding.step })}>{finding.step}</a>
            </dd>
          </>
        )}
      </dl>
    </article>
  );
}

function AlertRows(props: { alerts: Alerts }) {
  const rows = props.alerts.alerts.map((alert) => ({
    alert: alert.name,
    state: alert.state,
    since: alert.since ?? "",
    "fires when": alert.condition,
    for: alert.for,
    facts: Object.entries(alert.facts).map(([name, fact]) => `${name} ${value(fact)}`).join(", "),
  }));
  if (!rows.length) return <p class="soft">This job declares no alert.</p>;
  const narrow = window.matchMedia(NARROW).matches;
  return (
    <Grid
      columns={narrow ? ["alert", "state", "fires when"] : ["alert", "state", "since", "fires when", "for", "facts"]}
      rows={rows}
      mark={(row) => (row["state"] === "firing" ? "late" : row["state"] === "pending" ? "held" : "")}
      label="alerts"
    />
  );
}

export function HealthScreen(_props: { job: Job }) {
  const told = health.value;
  if (told === null) return <p class="empty">Looking at the job.</p>;
  const fired = new Set(told.findings.map((finding) => finding.rule));
  const wrong = told.findings.filter((finding) => finding.wrong).length;
  const firing = told.alerts?.firing ?? 0;
  const alerts = firing ? `; ${one(firing, "alert")} ${firing === 1 ? "fires" : "fire"}` : "";
  return (
    <div class="page">
      <h2>
        {wrong ? `${wrong} of ${told.rules.length} rules found something wrong` : "Nothing wrong is found"}
        {alerts}
      </h2>
      <p class="soft">
        The rules of <code>headrace why</code>, looked at every three seconds.
      </p>
      <div class="cards">
        {told.findings.map((finding, number) => (
          <Card key={`${finding.rule}/${finding.step}/${number}`} finding={finding} />
        ))}
      </div>
      {told.alerts && (
        <>
          <h3>Alerts</h3>
          <AlertRows alerts={told.alerts} />
        </>
      )}
      <h3>Watched, and fine</h3>
      <dl class="wide fine">
        {told.rules
          .filter((rule) => !fired.has(rule.rule))
          .map((rule) => (
            <>
              <dt key={rule.rule}>{rule.rule}</dt>
              <dd>{rule.watches}</dd>
            </>
          ))}
      </dl>
    </div>
  );
}
