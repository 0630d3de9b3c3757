// Numbers, times and durations as people read them: a unit on every number, times in UTC.

import { written } from "./json";

// Made once: to make a format costs much more than to use it.
const WHOLE = new Intl.NumberFormat("en-US");

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) >= 10_000_000) return `${(value / 1_000_000).toFixed(1)} M`;
  return WHOLE.format(Math.round(value));
}

export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  return `${value > 0 && value < 10 ? value.toFixed(1) : WHOLE.format(Math.round(value))}/s`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  let size = value;
  while (size >= 1000 && place < units.length - 1) [size, place] = [size / 1000, place + 1];
  return `${place === 0 ? size : size.toFixed(1)} ${units[place]}`;
}

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 59.95) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 7200) return `${Math.floor(whole / 60)} min${whole % 60 ? ` ${whole % 60} s` : ""}`;
  return `${(value / 3600).toFixed(1)} h`;
}

// The same where there is little room: one unit.
export function about(text: string | null | undefined, now: number): string {
  const whole = text ? Math.max(0, (now - Date.parse(text)) / 1000) : 0;
  if (!text || whole < 10) return ago(text, now);
  if (whole < 60) return `${Math.floor(whole)} s`;
  return whole < 7200 ? `${Math.floor(whole / 60)} min` : whole < 172_800 ? `${Math.floor(whole / 3600)} h` : `${count(Math.floor(whole / 86_400))} days`;
}

export function ago(text: string | null | undefined, now: number): string {
  return text ? seconds(Math.max(0, (now - Date.parse(text)) / 1000)) : "–";
}

export function one(value: number, name: string): string {
  return `${count(value)} ${name}${value === 1 ? "" : "s"}`;
}

export function clock(text: string | null | undefined): string {
  return text ? new Date(text).toISOString().slice(11, 19) : "–";
}

export function moment(text: string | null | undefined): string {
  return text ? new Date(text).toISOString().slice(0, 19).replace("T", " ") : "–";
}

// The time alone on the day that it is.
function brief(text: string): string {
  return text.slice(0, 10) === new Date().toISOString().slice(0, 10) ? clock(text) : moment(text);
}

export function local(text: string | null | undefined): string {
  return text ? new Date(text).toLocaleString() : "";
}

export function value(shown: unknown): string {
  if (shown === null || shown === undefined) return "null";
  if (typeof shown === "bigint") return WHOLE.format(shown);
  if (typeof shown === "number") return Number.isInteger(shown) ? WHOLE.format(shown) : String(shown);
  if (typeof shown === "string") return /^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$/.test(shown) ? brief(shown) : shown;
  return written(shown);
}
