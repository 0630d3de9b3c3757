// Charts of a view: a line over time where it has a window, bars where few rows are ranked.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock, count, value } from "./format";
import { theme } from "./state";
import type { Row } from "./types";

export type ChartData = { kind: "bars"; title: string; bars: [string, number][] } | { kind: "line"; title: string; times: number[]; values: number[] };

const PLACES = 12;

export function chartOf(rows: Row[], key: string[], columns: string[]): ChartData | null {
  const numbers = columns.filter((column) => !key.includes(column) && rows.some((row) => typeof row[column] === "number"));
  const measure = numbers.find((column) => column !== "rank" && column !== "revision");
  if (!measure || rows.length < 2) return null;
  const time = key.find((column) => rows.some((row) => /^\d{4}-\d\d-\d\dT/.test(String(row[column]))));
  if (time && !columns.includes("rank")) {
    const line = lineOf(rows, time, measure);
    if (line.times.length >= 2) return line;
  }
  const label = key.filter((column) => column !== time);
  const latest = time ? rows.map((row) => String(row[time])).reduce((one, other) => (one > other ? one : other)) : "";
  const newest = time ? rows.filter((row) => String(row[time]) === latest) : rows;
  if (newest.length > 2 * PLACES) return null;
  const bars = newest.map((row): [string, number] => [label.map((column) => value(row[column])).join(", "), Number(row[measure] ?? 0)]);
  const title = time ? `${measure}, ${time} ${clock(latest)}` : measure;
  return { kind: "bars", title, bars: bars.sort((one, other) => other[1] - one[1]).slice(0, PLACES) };
}

function lineOf(rows: Row[], time: string, measure: string): ChartData & { kind: "line" } {
  const sums = new Map<number, number>();
  for (const row of rows) {
    const at = Date.parse(String(row[time])) / 1000;
    if (!Number.isNaN(at)) sums.set(at, (sums.get(at) ?? 0) + Number(row[measure] ?? 0));
  }
  const times = [...sums.keys()].sort((one, other) => one - other);
  return { kind: "line", title: `${measure} by ${time}, all rows added up`, times, values: times.map((at) => sums.get(at) ?? 0) };
}

function Line(props: { times: number[]; values: number[]; title: string }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return undefined;
    const style = getComputedStyle(document.documentElement);
    const ink = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: ink("--soft"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
    plot.current = new uPlot(
      {
        width: element.clientWidth,
        height: 160,
        tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), "UTC"),
        series: [{}, { stroke: ink("--accent"), width: 1.5, fill: ink("--accent-soft"), points: { show: true, size: 4 } }],
        axes: [
          { ...axis, values: (_plot, stamps) => stamps.map((stamp) => new Date(stamp * 1000).toISOString().slice(11, stamp % 60 ? 19 : 16)) },
          { ...axis, size: 64, values: (_plot, marks) => marks.map((mark) => count(mark)) },
        ],
        scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] } },
        legend: { show: false },
        cursor: { show: false },
      },
      [props.times, props.values],
      element,
    );
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: 160 }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
    };
  }, [theme.value]);
  useEffect(() => plot.current?.setData([props.times, props.values]), [props.times, props.values]);
  return <div ref={place} class="line" role="img" aria-label={props.title} />;
}

export function Chart(props: { chart: ChartData }) {
  const { chart } = props;
  const most = chart.kind === "bars" ? Math.max(...chart.bars.map(([, number]) => number), 1) : 0;
  return (
    <figure>
      <figcaption>{chart.title}</figcaption>
      {chart.kind === "line" ? (
        <Line times={chart.times} values={chart.values} title={chart.title} />
      ) : (
        <div class="bars">
          {chart.bars.map(([name, number]) => (
            <>
              <span key={name}>{name}</span>
              <i style={{ width: `${(100 * number) / most}%` }} />
              <b>{count(number)}</b>
            </>
          ))}
        </div>
      )}
    </figure>
  );
}
