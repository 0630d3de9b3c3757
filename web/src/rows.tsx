// Tables of rows: a grid, the rows of a view as they change, and the newest records of a topic.

import { useEffect, useMemo, useState } from "preact/hooks";
import { local, moment, value } from "./format";
import { nameOf, useLive } from "./live";
import type { Live } from "./live";
import { ask } from "./server";
import type { Row, Topic } from "./types";

interface GridProps {
  columns: string[];
  rows: Row[];
  id?: (row: Row) => string;
  changed?: (row: Row) => string;
  order?: string;
  onOrder?: (column: string) => void;
  onRow?: (row: Row) => void;
  chosen?: (row: Row) => boolean;
  mark?: (row: Row) => string;
  title?: (column: string) => string;
  label?: string;
}

// What a cell says when it is pointed at: a time in full, and a text that may be cut.
function hint(shown: unknown, text: string): string | undefined {
  if (typeof shown === "string" && text !== shown) return `${moment(shown)} UTC, ${local(shown)} here`;
  return text.length > 24 ? text : undefined;
}

function Cell(props: { shown: unknown; number: boolean }) {
  const text = value(props.shown);
  return (
    <td class={props.shown === null ? "null" : props.number ? "n" : ""} title={hint(props.shown, text)}>
      {text}
    </td>
  );
}

export function Grid(props: GridProps) {
  const { columns, rows } = props;
  const numeric = useMemo(() => new Set(columns.filter((column) => rows.some((row) => typeof row[column] === "number" || typeof row[column] === "bigint" || /^(\d+ min )?[\d.,]+ (B|kB|MB|GB|TB|ms|s|min|h)$/.test(String(row[column]))))), [columns.join(), rows.length]);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={props.label ?? "rows"}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} class={numeric.has(column) ? "n" : ""} aria-sort={props.order === column ? "ascending" : props.order === `-${column}` ? "descending" : undefined}>
                {props.onOrder ? (
                  <button onClick={() => props.onOrder?.(column)}>
                    {props.title?.(column) ?? column}
                    {props.order === column ? " ↑" : props.order === `-${column}` ? " ↓" : ""}
                  </button>
                ) : (
                  (props.title?.(column) ?? column)
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, number) => (
            <tr
              key={props.id?.(row) ?? number}
              class={`${props.changed?.(row) ?? ""} ${props.mark?.(row) ?? ""} ${props.onRow ? "link" : ""} ${props.chosen?.(row) ? "on" : ""}`}
              tabIndex={props.onRow ? 0 : undefined}
              onClick={props.onRow && (() => props.onRow?.(row))}
              onKeyDown={props.onRow && ((event) => event.key === "Enter" && props.onRow?.(row))}
            >
              {columns.map((column) => (
                <Cell key={column} shown={row[column]} number={numeric.has(column)} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function compare(one: unknown, other: unknown): number {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  return one < other ? -1 : 1;
}

export function passes(row: Row, filter: string): boolean {
  const wanted = filter.toLowerCase();
  // A number is found as it is shown, and as it is typed.
  const found = (shown: unknown): boolean => value(shown).toLowerCase().includes(wanted) || (typeof shown === "number" || typeof shown === "bigint" ? String(shown).includes(wanted) : false);
  return !filter || Object.values(row).some(found);
}

export function Filter(props: { value: string; onInput: (text: string) => void; what?: string }) {
  const what = `filter ${props.what ?? "rows"}`;
  return <input data-filter placeholder={`${what}  /`} aria-label={what} value={props.value} onInput={(event) => props.onInput(event.currentTarget.value)} />;
}

// Newest windows first, then by rank, then the largest first.
export function usual(rows: Row[], key: string[]): Row[] {
  const time = key.find((column) => rows.some((row) => /^\d{4}-\d\d-\d\dT/.test(String(row[column]))));
  const measure = Object.keys(rows[0] ?? {}).find((column) => !key.includes(column) && typeof rows[0]?.[column] === "number") ?? "";
  return [...rows].sort(
    (one, other) =>
      (time ? -compare(one[time], other[time]) : 0) ||
      compare(one["rank"], other["rank"]) ||
      (measure ? -compare(one[measure], other[measure]) : 0) ||
      compare(nameOf(one, key), nameOf(other, key)),
  );
}

export function LiveRows(props: { view: string; viewKey: string[]; limit: number }) {
  const [filter, setFilter] = useState("");
  const live = useLive(props.view, props.viewKey);
  const shown = usual([...live.rows.values()].filter((row) => passes(row, filter)), props.viewKey).slice(0, props.limit);
  const columns = Object.keys(shown[0] ?? {}).filter((column) => column !== "window_end" && column !== "revision");
  return (
    <>
      <div class="tools">
        <Filter value={filter} onInput={setFilter} />
      </div>
      {shown.length ? (
        <Grid columns={columns} rows={shown} changed={(row) => fading(live, nameOf(row, props.viewKey))} />
      ) : (
        <p class="soft">{live.connected ? (filter ? "No row passes the filter." : "No rows yet.") : "Waiting for rows."}</p>
      )}
    </>
  );
}

// Two classes with the same fade take turns, so that a row that changes again fades again.
export function fading(live: Live, name: string): string {
  // Where everything changes at once, nothing stands out.
  const changed = live.busy ? undefined : live.changed.get(name);
  return changed && performance.now() - changed.at < 600 ? (changed.times % 2 ? "new" : "newer") : "";
}

export function RecordRows(props: { topic: string }) {
  const [rows, setRows] = useState<Row[] | null>(null);
  const [filter, setFilter] = useState("");
  useEffect(() => {
    let gone = false;
    const look = (): void => void newest(props.topic, 20).then((found) => gone || setRows(found), () => undefined);
    look();
    const timer = setInterval(look, 1000);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [props.topic]);
  if (rows === null) return <p class="soft">Waiting for records.</p>;
  const shown = rows.filter((row) => passes(row, filter)).slice(0, 30);
  const columns = Object.keys(rows[0] ?? {}).filter((name) => !name.startsWith("_"));
  return (
    <>
      <div class="tools">
        <Filter value={filter} onInput={setFilter} what="records" />
        <a href={`#/${encodeURIComponent(location.hash.split("/")[1] ?? "")}/topics/${encodeURIComponent(props.topic)}`}>all records</a>
      </div>
      {shown.length ? <Grid columns={["_offset", ...columns]} rows={shown} title={(column) => (column === "_offset" ? "offset" : column)} /> : <p class="soft">{rows.length ? "No record passes the filter." : "No records yet."}</p>}
    </>
  );
}

// The newest records of all partitions of a topic, the newest first.
export async function newest(topic: string, each: number): Promise<Row[]> {
  const path = `api/v1/topics/${encodeURIComponent(topic)}`;
  const found = await ask<Topic>(path);
  const parts = await Promise.all(
    found.partitions.map((part) =>
      ask<{ records: Row[] }>(`${path}/records?partition=${part.partition}&offset=${Math.max(part.start, part.end - each)}&limit=${each}`),
    ),
  );
  return parts.flatMap((part) => part.records).sort((one, other) => compare(other["_time"], one["_time"]) || compare(other["_offset"], one["_offset"]));
}
