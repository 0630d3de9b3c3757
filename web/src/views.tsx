// Views: the table itself, live or as of an epoch, with a chart where it has a window or a rank, and ways to take it along.

import { useEffect, useState } from "preact/hooks";
import { Chart, chartOf } from "./chart";
import { Copies, Downloads } from "./copies";
import { count, one } from "./format";
import { asOf, nameOf, useLive } from "./live";
import type { Live } from "./live";
import { columnsOf } from "./panel";
import { Filter, Grid, compare, fading, passes, usual } from "./rows";
import { ask } from "./server";
import { go, place } from "./state";
import type { Job, Row, View } from "./types";

const SHOWN = 200;

function AsOf(props: { live: Live; epoch: number | null; onEpoch: (epoch: number | null) => void }) {
  const { live, epoch } = props;
  const first = Math.max(0, (live.undo[0]?.epoch ?? live.epoch) - 1);
  const shown = epoch ?? live.epoch;
  return (
    <span class="copies">
      <label>
        as of epoch{" "}
        <input
          type="range"
          min={first}
          max={live.epoch}
          value={shown}
          style={{ minWidth: 0, width: "120px", verticalAlign: "middle" }}
          disabled={first >= live.epoch}
          onInput={(event) => props.onEpoch(Number(event.currentTarget.value) >= live.epoch ? null : Number(event.currentTarget.value))}
        />{" "}
        <span class="figure" data-epoch={shown}>
          {count(shown)}
        </span>
      </label>
      <button class={epoch === null ? "" : "on"} onClick={() => props.onEpoch(epoch === null ? live.epoch : null)}>
        {epoch === null ? "hold" : "live again"}
      </button>
    </span>
  );
}

function Rows(props: { view: View }) {
  const { view } = props;
  const live = useLive(view.name, view.key);
  const [order, setOrder] = useState("");
  const [filter, setFilter] = useState("");
  const [epoch, setEpoch] = useState<number | null>(null);
  const columns = columnsOf(view.columns).map(([name]) => name);
  const rows = [...(epoch === null ? live.rows : asOf(live, epoch)).values()];
  const kept = rows.filter((row) => passes(row, filter));
  const column = order.replace(/^-/, "");
  const sorted = order ? kept.sort((one, other) => compare(one[column], other[column]) * (order.startsWith("-") ? -1 : 1)) : usual(kept, view.key);
  const name = (row: Row): string => nameOf(row, view.key);
  const chart = chartOf(kept, view.key, columns);
  return (
    <>
      <div class="tools">
        <Filter value={filter} onInput={setFilter} />
        <span class="soft figure">
          {one(rows.length, "row").replace(" ", live.more ? "+ " : " ")}
        </span>
        <AsOf live={live} epoch={epoch} onEpoch={setEpoch} />
        <span class="grow" />
        <Copies view={view.name} />
        <Downloads view={view.name} rows={view.rows ?? 0} />
      </div>
      {chart && <Chart key={chart.kind} chart={chart} />}
      {sorted.length ? (
        <Grid
          columns={columns}
          rows={sorted.slice(0, SHOWN)}
          order={order}
          onOrder={(chosen) => setOrder(order === chosen ? `-${chosen}` : chosen)}
          changed={(row) => (epoch === null ? fading(live, name(row)) : "")}
          label={view.name}
        />
      ) : (
        <p class="soft">{live.connected ? (filter ? "No row passes the filter." : "The view has no rows yet.") : "Waiting for rows."}</p>
      )}
      {sorted.length > SHOWN && <p class="soft">The first {SHOWN} are shown; filter or order to see others.</p>}
    </>
  );
}

export function ViewsScreen(props: { job: Job }) {
  const [views, setViews] = useState<View[] | null>(null);
  useEffect(() => {
    const look = (): void => void ask<View[]>("api/v1/views").then(setViews, () => undefined);
    look();
    const timer = setInterval(look, 5000);
    return () => clearInterval(timer);
  }, []);
  const mine = views?.filter((view) => view.job === props.job.name) ?? [];
  // A top is what people come for.
  const best = mine.find((view) => /\brank\b/.test(view.columns)) ?? mine[0];
  const selected = mine.find((view) => view.name === place.value.selected) ?? best;
  if (views === null) return <p class="empty">Loading the views.</p>;
  if (!selected) {
    return (
      <p class="empty">
        This job has no view. Declare one: <code>app.view("name", stream)</code>
      </p>
    );
  }
  return (
    <div class="page">
      <div class="chips" role="tablist" aria-label="views">
        {mine.map((view) => (
          <button
            key={view.name}
            role="tab"
            aria-selected={view.name === selected.name}
            class={view.name === selected.name ? "on" : ""}
            onClick={() => go({ selected: view.name })}
          >
            {view.name}
          </button>
        ))}
      </div>
      <h2>{selected.name}</h2>
      <p class="soft">One row for each {selected.key.join(", ")}.</p>
      <Rows key={selected.name} view={selected} />
    </div>
  );
}
