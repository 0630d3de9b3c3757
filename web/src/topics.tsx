// Topics: partitions and sizes, records by offset, time or key, a form to send one, and the groups that read.

import { useEffect, useState } from "preact/hooks";
import { bytes, clock, count, one, value } from "./format";
import { Groups } from "./groups";
import type { Group } from "./groups";
import { Schema, columnsOf } from "./panel";
import { parse, written } from "./json";
import { Filter, Grid, compare } from "./rows";
import { ask, trouble } from "./server";
import { go, link, place, role } from "./state";
import type { Job, Row, Topic } from "./types";

function total(topic: Topic): number {
  return topic.partitions.reduce((sum, partition) => sum + partition.end - partition.start, 0);
}

interface Asked {
  partition: number;
  by: string;
  text: string;
  back: number;
}

interface Found {
  records: Row[];
  from: number;
  whole: boolean;
}

const NEWEST = 30;
const LIMIT = 100;
// The server looks at so many records for those of a key.
const SEARCHED = 200_000;

async function found(topic: Topic, asked: Asked): Promise<Found> {
  const path = (partition: number, where: string): string => `api/v1/topics/${encodeURIComponent(topic.name)}/records?partition=${partition}&${where}&limit=${LIMIT}`;
  if (asked.by === "key" && asked.text) {
    // The newest first; a key may be in any partition.
    const parts = await Promise.all(
      topic.partitions.map(async (part) => {
        const from = Math.max(part.start, part.end - (asked.back + 1) * SEARCHED);
        const told = await ask<{ records: Row[] }>(path(part.partition, `offset=${from}&key=${encodeURIComponent(asked.text)}`));
        return { records: told.records, from, whole: from <= part.start };
      }),
    );
    const records = parts.flatMap((part) => part.records).sort((one, other) => compare(other["_time"], one["_time"]));
    return { records, from: Math.max(...parts.map((part) => part.from)), whole: parts.every((part) => part.whole) };
  }
  const partition = topic.partitions[asked.partition];
  const newest = Math.max(partition?.start ?? 0, (partition?.end ?? 0) - NEWEST);
  const where = asked.text ? `${asked.by}=${encodeURIComponent(asked.text)}` : `offset=${newest}`;
  const told = await ask<{ records: Row[] }>(path(asked.partition, where));
  return { records: asked.text ? told.records : told.records.reverse(), from: newest, whole: true };
}

// A link may name a record: topic/partition/offset.
function linked(selected: string): Asked {
  const [, partition, offset] = selected.split("/");
  return { partition: Number(partition ?? 0), by: "offset", text: offset ?? "", back: 0 };
}

const PLACEHOLDERS: Record<string, string> = { offset: "newest", time: "2026-01-01T12:00:00Z", key: "the whole key" };
const HIDDEN = ["_partition", "_tombstone", "_key"];
const TITLES: Record<string, string> = { _offset: "offset", _time: "time", _key: "key", _partition: "partition", _tombstone: "removes its key" };

function Records(props: { topic: Topic }) {
  const { topic } = props;
  const [asked, setAsked] = useState<Asked>(() => linked(place.value.selected));
  const [answer, setAnswer] = useState<Found | null>(null);
  const [wrong, setWrong] = useState("");
  const [opened, setOpened] = useState<Row | null>(null);
  const live = !asked.text && !opened ? topic.partitions[asked.partition]?.end : 0;
  useEffect(() => {
    let gone = false;
    found(topic, asked).then(
      (told) => {
        if (gone) return;
        setAnswer(told);
        setWrong("");
      },
      (problem: unknown) => gone || setWrong(trouble(problem)),
    );
    return () => {
      gone = true;
    };
  }, [topic.name, asked, live]);
  const searching = asked.by === "key" && asked.text !== "";
  const rows = answer?.records ?? [];
  const shown = HIDDEN.filter((name) => (name === "_partition" ? searching : (name !== "_key" || !topic.key.length) && rows.some((row) => row[name])));
  const columns = Object.keys(rows[0] ?? {}).filter((name) => !name.startsWith("_"));
  return (
    <>
      <div class="tools">
        <select aria-label="find by" value={asked.by} onChange={(event) => setAsked({ ...asked, by: event.currentTarget.value, text: "", back: 0 })}>
          {Object.keys(PLACEHOLDERS).map((name) => (
            <option key={name} value={name}>
              by {name}
            </option>
          ))}
        </select>
        {asked.by !== "key" && (
          <select aria-label="partition" value={asked.partition} onChange={(event) => setAsked({ ...asked, partition: Number(event.currentTarget.value) })}>
            {topic.partitions.map((one) => (
              <option key={one.partition} value={one.partition}>
                partition {one.partition}
              </option>
            ))}
          </select>
        )}
        <input
          key={asked.by}
          data-find
          aria-label={asked.by}
          placeholder={PLACEHOLDERS[asked.by]}
          value={asked.text}
          onChange={(event) => setAsked({ ...asked, text: event.currentTarget.value.trim(), back: 0 })}
        />
        {asked.text && <button onClick={() => setAsked({ ...asked, text: "", back: 0 })}>newest again</button>}
        {wrong && <span class="bad">{wrong}</span>}
      </div>
      {opened && (
        <div class="card">
          <h3>
            partition {value(opened["_partition"])}, offset {value(opened["_offset"])}{" "}
            <button class="text" onClick={() => setOpened(null)}>
              close
            </button>
          </h3>
          <pre>{written(opened, 2)}</pre>
        </div>
      )}
      {rows.length ? (
        <Grid
          columns={["_offset", "_time", ...shown, ...columns]}
          title={(column) => TITLES[column] ?? column}
          rows={rows}
          onRow={setOpened}
          chosen={(row) => (opened ? same(row, opened) : asked.by === "offset" && String(row["_offset"]) === asked.text)}
          id={(row) => `${String(row["_partition"])}/${String(row["_offset"])}`}
          label={`records of ${topic.name}`}
        />
      ) : (
        <p class="soft">
          {answer === null ? "Loading the records." : searching ? "No record with this key." : asked.text ? "No record from there on." : "No record in this partition."}
          {answer !== null && !asked.text && (
            <>
              {" "}
              Send one: <code>headrace produce {topic.name}</code>
            </>
          )}
        </p>
      )}
      {searching && answer !== null && !answer.whole && (
        <p class="tools">
          <span class="soft">Searched from offset {count(answer.from)} on.</span>
          <button onClick={() => setAsked({ ...asked, back: asked.back + 1 })}>search further back</button>
        </p>
      )}
    </>
  );
}

function same(one: Row, other: Row): boolean {
  return one["_offset"] === other["_offset"] && one["_partition"] === other["_partition"];
}

function example(topic: Topic): string {
  const made = (kind: string): unknown => {
    if (/^(bigint|int|smallint|tinyint|long)/.test(kind)) return 1;
    if (/^(double|float|decimal)/.test(kind)) return 1.5;
    if (/^boolean/.test(kind)) return true;
    if (/^timestamp/.test(kind)) return new Date().toISOString();
    if (/^date/.test(kind)) return new Date().toISOString().slice(0, 10);
    if (/^array/.test(kind)) return [];
    return /^string/.test(kind) ? "text" : null;
  };
  return JSON.stringify(Object.fromEntries(columnsOf(topic.columns).map(([name, kind]) => [name, made(kind)])), null, 2);
}

function Produce(props: { topic: Topic }) {
  const [text, setText] = useState(() => example(props.topic));
  const [said, setSaid] = useState("");
  if (role.value === "read") {
    return (
      <p class="soft">
        To send records, open the page with the token of the role operate: <code>headrace serve --operate</code>
      </p>
    );
  }
  async function send(): Promise<void> {
    try {
      const stored = await ask<{ stored: number; next_offsets: Record<string, number> }>(`api/v1/topics/${encodeURIComponent(props.topic.name)}`, parse(text));
      const offsets = Object.entries(stored.next_offsets).map(([partition, next]) => `partition ${partition}, offset ${count(next - 1)}`);
      setSaid(`${one(stored.stored, "record")} stored: ${offsets.join("; ")}`);
    } catch (problem) {
      setSaid(problem instanceof SyntaxError ? `this is not JSON: ${problem.message}` : trouble(problem));
    }
  }
  return (
    <>
      <textarea class="mono" aria-label="record" rows={6} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="tools">
        <button onClick={() => void send()}>send</button>
        <span role="status">{said}</span>
      </div>
    </>
  );
}

function List(props: { topics: Topic[]; selected: Topic | undefined }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="topics">
      <table>
        <thead>
          <tr>
            <th>topic</th>
            <th class="n wide-only">partitions</th>
            <th class="n">records</th>
            <th class="n">size</th>
            <th>latest event</th>
          </tr>
        </thead>
        <tbody>
          {props.topics.map((topic) => (
            <tr key={topic.name} class={`link ${topic.name === props.selected?.name ? "on" : ""}`} onClick={() => go({ selected: topic.name })}>
              <td>
                <a href={link({ selected: topic.name })} data-topic={topic.name}>{topic.name}</a>
              </td>
              <td class="n wide-only">{topic.partitions.length}</td>
              <td class="n" data-records={topic.name}>
                {count(total(topic))}
              </td>
              <td class="n">{bytes(topic.partitions.reduce((sum, part) => sum + part.bytes, 0))}</td>
              <td>{clock(topic.partitions.map((part) => part.max_event_time).filter(Boolean).sort().pop())}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function TopicsScreen(props: { job: Job }) {
  const { job } = props;
  const [topics, setTopics] = useState<Topic[] | null>(null);
  const [groups, setGroups] = useState<Group[]>([]);
  const [filter, setFilter] = useState("");
  useEffect(() => {
    const look = (): void => {
      ask<Topic[]>("api/v1/topics").then(setTopics, () => undefined);
      ask<Group[]>("api/v1/groups").then(setGroups, () => undefined);
    };
    look();
    const timer = setInterval(look, 2000);
    return () => clearInterval(timer);
  }, []);
  if (topics === null) return <p class="empty">Loading the topics.</p>;
  if (!topics.length) {
    return (
      <p class="empty">
        There is no topic yet. Make one: <code>headrace topics create --app app.py</code>
      </p>
    );
  }
  const shown = topics.filter((topic) => topic.name.toLowerCase().includes(filter.toLowerCase()));
  const named = place.value.selected.split("/")[0];
  // The topics of the job that is looked at come first to mind.
  const mine = new Set(job.steps.map((step) => step.topic));
  const selected = topics.find((topic) => topic.name === named) ?? shown.find((topic) => mine.has(topic.name)) ?? shown[0];
  return (
    <div class="split">
      <div class="page" tabIndex={0} role="region" aria-label="topics and records">
        <div class="tools">
          <Filter value={filter} onInput={setFilter} what="topics" />
        </div>
        {shown.length ? <List topics={shown} selected={selected} /> : <p class="soft">No topic passes the filter.</p>}
        {selected && (
          <>
            <h3>Records of {selected.name}</h3>
            <Records key={place.value.selected.includes("/") ? place.value.selected : selected.name} topic={selected} />
          </>
        )}
      </div>
      <aside tabIndex={0} aria-label="selected">
        {selected && (
          <>
            <h2>{selected.name}</h2>
            <p class="soft">
              Key {selected.key.join(", ") || "none"}; time {selected.time ?? "when it came"}.
            </p>
            <h3>Partitions</h3>
            <Grid
              columns={["partition", "start", "end", "segments", "size"]}
              rows={selected.partitions.map((part) => ({ ...part, size: bytes(part.bytes) })) as unknown as Row[]}
              label="partitions"
            />
            <h3>Columns</h3>
            <Schema columns={selected.columns} keys={selected.key} />
            <h3>Groups</h3>
            <Groups groups={groups} topic={selected} />
            <h3>Send a record</h3>
            <Produce key={selected.name} topic={selected} />
          </>
        )}
      </aside>
    </div>
  );
}
