// The bar on top of every screen: does it run, does it keep up, how far is time, who holds it.

import type { ComponentChildren } from "preact";
import { ago, clock, count, local, one, rate, seconds } from "./format";
import { SCREENS, go, health, job, link, names, now, place, theme } from "./state";
import type { Screen } from "./state";
import type { Job } from "./types";

export const TITLES: Record<Screen, string> = {
  pipeline: "Pipeline",
  time: "Time",
  views: "Views",
  topics: "Topics",
  epochs: "Epochs",
  late: "Late & dead",
  health: "Health",
};

function Fact(props: { name: string; children: ComponentChildren; warn?: boolean; title?: string; width?: string }) {
  return (
    <span class={props.warn ? "fact warn" : "fact"} title={props.title ?? ""}>
      <span>{props.name}</span>
      <b style={{ minWidth: props.width ?? "2.5em" }}>{props.children}</b>
    </span>
  );
}

function holder(told: Job): string {
  if (told.held_by === null) return "";
  return told.held ? `, held by ${told.held_by} for ${ago(told.held_since, now.value)}` : `, from ${told.held_by}`;
}

function Facts() {
  const told = job.value;
  if (told === null) return null;
  const running = told.state === "running";
  const behind = (told.lag_seconds ?? 0) > 10;
  return (
    <>
      <span class={running ? "state" : "state bad"} title={told.last_error ?? ""}>
        <span class={running ? "dot" : "dot off"} />
        {told.state}
      </span>
      <Fact name="epoch">{count(told.epoch)}</Fact>
      <Fact name="takes" width="3.6em">
        {seconds(told.epoch_seconds)}
      </Fact>
      <Fact name="in" width="4em">
        {rate(told.in_rate)}
      </Fact>
      <Fact name="out" width="4em">
        {rate(told.out_rate)}
      </Fact>
      <Fact name="lag" warn={behind} title={`${count(told.lag)} records wait`} width="3.6em">
        {told.lag_seconds !== null ? seconds(told.lag_seconds) : told.lag === null ? "–" : one(told.lag, "record")}
      </Fact>
      <Fact name="watermark" warn={told.held} title={`${local(told.watermark)} here. The watermark is the minimum over the partitions.`}>
        <a class="plain" href={link({ screen: "time", selected: "" })} data-watermark>
          {clock(told.watermark)}
          {holder(told)}
        </a>
      </Fact>
    </>
  );
}

export function Bar() {
  return (
    <header class="bar">
      <span class="brand">Headrace</span>
      <select aria-label="job" title={place.value.job} value={place.value.job} onChange={(event) => go({ job: event.currentTarget.value, selected: "" })}>
        {(names.value ?? []).map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <Facts />
    </header>
  );
}

function nextTheme(): string {
  return theme.value === "" ? "light" : theme.value === "light" ? "dark" : "";
}

export function Screens(props: { onPalette: () => void }) {
  const missed = job.value === null ? 0 : job.value.late + job.value.dead_letter;
  const wrong = health.value?.findings.filter((finding) => finding.wrong).length ?? 0;
  const firing = health.value?.alerts?.firing ?? 0;
  const marks: Partial<Record<Screen, number>> = { late: missed, health: wrong + firing };
  return (
    <div class="screens">
      <nav aria-label="screens">
        {SCREENS.map((screen) => (
          <a
            key={screen}
            class={place.value.screen === screen ? "on" : ""}
            aria-current={place.value.screen === screen ? "page" : undefined}
            href={link({ screen, selected: "" })}
          >
            {TITLES[screen]} {(marks[screen] ?? 0) > 0 && <i>{count(marks[screen])}</i>}
          </a>
        ))}
      </nav>
      <button class="wide-only" onClick={props.onPalette} title="go anywhere by name">
        Ctrl-K
      </button>
      <button onClick={() => (theme.value = nextTheme())} title="colors: light, dark, or as the system has them">
        <span class="wide-only">theme: </span>
        {theme.value || "system"}
      </button>
    </div>
  );
}
