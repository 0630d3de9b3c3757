// Consumer groups of a topic: where each is, how far behind, and another place to go on from.

import { useState } from "preact/hooks";
import { count, one, seconds } from "./format";
import { Grid } from "./rows";
import { ask, trouble } from "./server";
import { role } from "./state";
import type { Row, Topic } from "./types";

export interface Group {
  name: string;
  state: string;
  members: unknown[];
  partitions: { topic: string; partition: number; committed: number | null; end: number; lag: number; lag_seconds: number | null }[];
}

const PLACES = ["beginning", "end", "offset", "time"] as const;

function Seek(props: { group: Group; topic: string }) {
  const { group, topic } = props;
  const [where, setWhere] = useState<(typeof PLACES)[number]>("beginning");
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const given = where === "offset" || where === "time";
  async function seek(): Promise<void> {
    if (where === "offset" && !/^\d+$/.test(text)) {
      setSaid("an offset is a whole number");
      return;
    }
    const to = where === "offset" ? Number(text) : where === "time" ? text : where;
    try {
      const moved = await ask<{ partition: number; offset: number }[]>(`api/v1/groups/${encodeURIComponent(group.name)}/seek`, { topic, to });
      setSaid(moved.map((place) => `partition ${place.partition} at ${count(place.offset)}`).join(", "));
    } catch (problem) {
      setSaid(trouble(problem));
    }
  }
  if (role.value !== "operate") return null;
  if (group.members.length) return <p class="soft">{one(group.members.length, "member")} read; a group seeks when none does.</p>;
  return (
    <div class="tools">
      <label>
        go on from{" "}
        <select aria-label={`go on from, ${group.name}`} value={where} onChange={(event) => setWhere(event.currentTarget.value as typeof where)}>
          {PLACES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {given && (
        <input
          aria-label={where}
          style={{ minWidth: 0, width: "180px" }}
          placeholder={where === "time" ? "2026-01-01T12:00:00Z" : "0"}
          value={text}
          onInput={(event) => setText(event.currentTarget.value.trim())}
        />
      )}
      <button onClick={() => void seek()}>seek {group.name}</button>
      <span role="status">{said}</span>
    </div>
  );
}

export function Groups(props: { groups: Group[]; topic: Topic }) {
  const reading = props.groups
    .map((group) => ({ ...group, partitions: group.partitions.filter((part) => part.topic === props.topic.name) }))
    .filter((group) => group.partitions.length);
  if (!reading.length) return <p class="soft">No consumer group reads this topic. Jobs keep their positions themselves.</p>;
  return (
    <>
      {reading.map((group) => (
        <section key={group.name}>
          <h4>
            {group.name} <span class="soft">{group.state}</span>
          </h4>
          <Grid
            columns={["partition", "committed", "end", "lag", "behind"]}
            rows={group.partitions.map((part) => ({ ...part, behind: seconds(part.lag_seconds) })) as unknown as Row[]}
            label={`group ${group.name}`}
          />
          <Seek group={group} topic={props.topic.name} />
        </section>
      ))}
    </>
  );
}
