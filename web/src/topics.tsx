// Topics: partitions and sizes, records by offset, time or key, a form to send one, and the groups that read.

import { useEffect, useState } from "preact/hooks";
import { bytes, clock, count, value } from "./format";
import { Groups } from "./groups";
import type { Group } from "./groups";
import { Schema, columnsOf } from "./panel";
import { Filter, Grid } from "./rows";
import { ask } from "./server";
import type { Problem } from "./server";
import { go, link, place, role } from "./state";
import type { Job, Row, Topic } from "./types";

function total(topic: Topic): number {
  return topic.partitions.reduce((sum, partition) => sum + partition.end - partition.start, 0);
}

function Records(props: { topic: Topic }) {
  const { topic } = props;
  const [asked, setAsked] = useState({ partition: 0, by: "offset", text: "" });
  const [found, setFound] = useState<{ records: Row[]; next: number } | null>(null);
  const [wrong, setWrong] = useState("");
  const [opened, setOpened] = useState<Row | null>(null);
  const partition = topic.partitions[asked.partition];
  useEffect(() => {
    const newest = Math.max(partition?.start ?? 0, (partition?.end ?? 0) - 30);
    const where = asked.text ? `${asked.by}=${encodeURIComponent(asked.text)}` : `offset=${newest}`;
    ask<{ records: Row[]; next: number }>(`api/v1/topics/${encodeURIComponent(topic.name)}/records?partition=${asked.partition}&${where}&limit=100`).then(
      (answer) => {
        setFound(answer);
        setWrong("");
      },
      (problem: Problem) => setWrong(problem.detail),
    );
  }, [topic.name, asked, partition?.end]);
  const columns = Object.keys(found?.records[0] ?? {}).filter((name) => !["_partition", "_tombstone", "_key"].includes(name));
  const ordered = columns.filter((name) => name.startsWith("_")).concat(columns.filter((name) => !name.startsWith("_")));
  const shown = asked.text && asked.by !== "key" ? (found?.records ?? []) : [...(found?.records ?? [])].reverse();
  return (
    <>
      <div class="tools">
        <select aria-label="partition" value={asked.partition} onChange={(event) => setAsked({ ...asked, partition: Number(event.currentTarget.value) })}>
          {topic.partitions.map((one) => (
            <option key={one.partition} value={one.partition}>
              partition {one.partition}
            </option>
          ))}
        </select>
        <select aria-label="find by" value={asked.by} onChange={(event) => setAsked({ ...asked, by: event.currentTarget.value })}>
          {["offset", "time", "key"].map((name) => (
            <option key={name} value={name}>
              by {name}
            </option>
          ))}
        </select>
        <input
          data-filter
          aria-label={asked.by}
          placeholder={asked.by === "time" ? "2026-01-01T12:00:00Z" : asked.by === "offset" ? "newest" : "the whole key"}
          onChange={(event) => setAsked({ ...asked, text: event.currentTarget.value.trim() })}
        />
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
          <pre>{JSON.stringify(opened, null, 2)}</pre>
        </div>
      )}
      {shown.length ? (
        <Grid columns={ordered} rows={shown} onRow={setOpened} id={(row) => String(row["_offset"])} label={`records of ${topic.name}`} />
      ) : (
        <p class="soft">No records here.</p>
      )}
    </>
  );
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
      const stored = await ask<{ stored: number; next_offsets: Record<string, number> }>(`api/v1/topics/${encodeURIComponent(props.topic.name)}`, JSON.parse(text));
      setSaid(`${stored.stored} stored`);
    } catch (problem) {
      setSaid(problem instanceof SyntaxError ? `this is not JSON: ${problem.message}` : (problem as Problem).detail);
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
            <th class="n">partitions</th>
            <th class="n">records</th>
            <th class="n">size</th>
            <th>latest event</th>
          </tr>
        </thead>
        <tbody>
          {props.topics.map((topic) => (
            <tr key={topic.name} class={`link ${topic.name === props.selected?.name ? "on" : ""}`} onClick={() => go({ selected: topic.name })}>
              <td>
                <a href={link({ selected: topic.name })}>{topic.name}</a>
              </td>
              <td class="n">{topic.partitions.length}</td>
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

export function TopicsScreen(_props: { job: Job }) {
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
  const shown = topics.filter((topic) => topic.name.includes(filter));
  const selected = topics.find((topic) => topic.name === place.value.selected) ?? shown[0];
  return (
    <div class="split">
      <div class="page" tabIndex={0} role="region" aria-label="topics and records">
        <div class="tools">
          <Filter value={filter} onInput={setFilter} what="topics" />
        </div>
        <List topics={shown} selected={selected} />
        {selected && (
          <>
            <h3>Records of {selected.name}</h3>
            <Records key={selected.name} topic={selected} />
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
