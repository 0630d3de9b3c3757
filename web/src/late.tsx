// Late records and dead letters: by reason, one by one, and sent again once they are mended.

import { useEffect, useRef, useState } from "preact/hooks";
import { count, one, value } from "./format";
import { parse, written } from "./json";
import { reveal } from "./reveal";
import { Filter, Grid, newest, passes } from "./rows";
import { ask, trouble } from "./server";
import { go, link, place, role } from "./state";
import type { Job, Row, Step } from "./types";

const MOST = 500;
// What the columns of a side topic are called: those of the letter, and those of the record that it is about.
const LATE: Record<string, string> = { _time: "kept at", _offset: "kept as offset", watermark: "watermark then", window_start: "window" };
const DEAD: Record<string, string> = { _time: "kept at", partition: "from partition", offset: "from offset" };

interface Redriven {
  redriven: number;
  repeated: number;
  failed: { reason: string }[];
}

async function redrive(topic: string, letters?: unknown[]): Promise<string> {
  try {
    const told = await ask<Redriven>(`api/v1/topics/${encodeURIComponent(topic)}/redrive`, letters ? { letters } : {});
    const parts = [
      told.redriven ? `${one(told.redriven, "record")} sent again` : "",
      told.repeated ? `${count(told.repeated)} had been sent again before` : "",
      told.failed.length ? `${count(told.failed.length)} not sent: ${told.failed[0]?.reason}` : "",
    ].filter(Boolean);
    return parts.join("; ") || "there was nothing to send";
  } catch (problem) {
    return trouble(problem);
  }
}

function Operate(props: { children: preact.ComponentChildren }) {
  if (role.value === "operate") return <div class="tools">{props.children}</div>;
  return (
    <p class="soft">
      To send records again, open the page with the token of the role operate: <code>headrace serve --operate</code>
    </p>
  );
}

function Mend(props: { topic: string; letter: Row }) {
  const { letter, topic } = props;
  const [text, setText] = useState(String(letter["record"] ?? ""));
  const [said, setSaid] = useState("");
  async function send(): Promise<void> {
    let record: unknown;
    try {
      record = parse(text);
    } catch (problem) {
      setSaid(`this is not JSON: ${(problem as Error).message}`);
      return;
    }
    setSaid(await redrive(topic, [{ partition: letter["_partition"], offset: letter["_offset"], record }]));
  }
  return (
    <>
      <h3>Fix it, and send it again</h3>
      <textarea class="mono" aria-label="the record" rows={6} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <Operate>
        <button onClick={() => void send()}>send again</button>
        <span role="status">{said}</span>
      </Operate>
    </>
  );
}

function Letter(props: { topic: string; letter: Row }) {
  const { letter, topic } = props;
  const dead = topic.endsWith(".dead");
  const stream = topic.replace(/\.(late|dead)$/, "");
  const shown = Object.entries(letter).filter(([name]) => !["record", "reason", "partition", "offset"].includes(name) && !name.startsWith("_"));
  return (
    <>
      <h2>{dead ? "Dead letter" : "Late record"}</h2>
      <p class="bad">{value(letter["reason"])}</p>
      {dead && (
        <>
          <p class="soft">
            The record that made it:{" "}
            <a href={link({ screen: "topics", selected: `${stream}/${String(letter["partition"])}/${String(letter["offset"])}` })}>
              {stream}, partition {value(letter["partition"])}, offset {value(letter["offset"])}
            </a>
          </p>
          <pre data-record>{pretty(letter["record"])}</pre>
        </>
      )}
      <dl>
        <dt>kept in</dt>
        <dd>
          {topic}, partition {value(letter["_partition"])}, offset {value(letter["_offset"])}
        </dd>
        {shown.map(([name, told]) => (
          <>
            <dt key={name}>{name}</dt>
            <dd>{value(told)}</dd>
          </>
        ))}
      </dl>
      {dead && <Mend topic={topic} letter={letter} />}
    </>
  );
}

function pretty(record: unknown): string {
  try {
    return written(parse(String(record)), 2);
  } catch {
    return String(record);
  }
}

function All(props: { topic: string; number: number }) {
  const [said, setSaid] = useState("");
  if (!props.number) return null;
  return (
    <Operate>
      <button onClick={() => void redrive(props.topic).then(setSaid)}>send all {count(props.number)} again as they are</button>
      <span role="status">{said}</span>
    </Operate>
  );
}

function words(selected: Step, job: Job): string {
  if (selected.kind === "late") {
    return `${one(job.late_minute, "record")} late in the last minute, over all streams. They came after every window they belong to had closed. They are kept in the topic ${selected.name}, and counted; nothing is dropped.`;
  }
  return `${one(job.dead_letter_minute, "record")} in the last minute, over all streams. They could not be read or computed. They are kept in the topic ${selected.name}, with the reason.`;
}

export function LateScreen(props: { job: Job }) {
  const sides = props.job.steps.filter((step: Step) => step.kind === "late" || step.kind === "dead");
  const selected = sides.find((step) => step.name === place.value.selected) ?? sides.find((step) => step.in > 0) ?? sides[0];
  const [rows, setRows] = useState<Row[] | null>(null);
  const [opened, setOpened] = useState<Row | null>(null);
  const [reason, setReason] = useState("");
  const [filter, setFilter] = useState("");
  const topic = selected?.topic ?? "";
  const name = opened ? `${topic}/${String(opened["_partition"])}/${String(opened["_offset"])}` : "";
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    setRows(null);
    setOpened(null);
    setReason("");
    if (!topic) return undefined;
    let gone = false;
    const take = (found: Row[]): void => {
      if (gone) return;
      setRows(found);
      // The newest is shown until another is chosen.
      setOpened((before) => before ?? found[0] ?? null);
    };
    const look = (): void => void newest(topic, MOST).then(take, () => undefined);
    look();
    const timer = setInterval(look, 3000);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [topic]);
  if (!selected) {
    return (
      <p class="empty">
        No record of this job was late or a dead letter. Their topics are made with the first. What is watched for: <code>headrace why</code>
      </p>
    );
  }
  const why = (row: Row): string => String(row["reason"] ?? "");
  const reasons = new Map<string, number>();
  for (const row of rows ?? []) reasons.set(why(row), (reasons.get(why(row)) ?? 0) + 1);
  const shown = (rows ?? []).filter((row) => (!reason || why(row) === reason) && passes(row, filter));
  // The panel has the rest: what is the same in all rows tells nothing.
  const hidden = ["reason", "window_end", ...(new Set(shown.map((row) => row["step"])).size < 2 ? ["step"] : [])];
  const own = Object.keys(shown[0] ?? {}).filter((column) => !column.startsWith("_") && !hidden.includes(column));
  const columns = [...(selected.kind === "late" ? ["_time", "_offset"] : ["_time"]), ...own];
  return (
    <div class="split">
      <div class="page" tabIndex={0} role="region" aria-label="late records and dead letters">
        <div class="chips" role="tablist" aria-label="topics">
          {sides.map((step) => (
            <button
              key={step.name}
              role="tab"
              aria-selected={step.name === selected.name}
              class={step.name === selected.name ? "on" : ""}
              onClick={() => go({ selected: step.name })}
            >
              {step.name} <b class={step.in ? "bad" : ""}>{count(step.in)}</b>
            </button>
          ))}
        </div>
        <h2>{selected.name}</h2>
        <p class="soft" data-words>
          {words(selected, props.job)}
        </p>
        {reasons.size > 0 && (
          <div class="chips">
            {[...reasons].map(([text, number]) => (
              <button key={text} class={reason === text ? "on" : ""} aria-pressed={reason === text} onClick={() => setReason(reason === text ? "" : text)}>
                {text || "no reason"} ({count(number)})
              </button>
            ))}
            <Filter value={filter} onInput={setFilter} what="records" />
          </div>
        )}
        {selected.kind === "dead" && <All topic={topic} number={selected.in} />}
        {rows === null ? (
          <p class="soft">Loading the records of {topic}.</p>
        ) : shown.length ? (
          <Grid
            columns={columns}
            title={(column) => (selected.kind === "dead" ? (DEAD[column] ?? column) : (LATE[column] ?? column))}
            rows={shown.slice(0, 200)}
            onRow={(row) => {
              setOpened(row);
              reveal(panel.current);
            }}
            chosen={(row) => opened !== null && row["_offset"] === opened["_offset"] && row["_partition"] === opened["_partition"]}
            id={(row) => `${String(row["_partition"])}/${String(row["_offset"])}`}
            label={selected.name}
          />
        ) : (
          <p class="soft">{rows.length ? "No record passes the filter." : "None. That is how it should be."}</p>
        )}
      </div>
      <aside ref={panel} tabIndex={0} aria-label="selected">
        {opened ? (
          <Letter key={name} topic={topic} letter={opened} />
        ) : (
          <p class="soft">Select a record to see all of it{selected.kind === "dead" ? ", fix it and send it again" : ""}.</p>
        )}
      </aside>
    </div>
  );
}
