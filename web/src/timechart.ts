// The drawing of Time: dots at (event time, arrival), the watermark through them, late ones below it, windows that fill at the bottom.

import type { Known, Pane } from "./arrivals";
import type { Arrival } from "./types";

export const HEIGHT = 400;
const BARS = 40;
const AXIS = 22;

export interface Scene {
  until: number;
  span: number;
  every: number;
  holder: string;
  side: string;
}

export interface Placed {
  x: number;
  y: number;
  dot: Arrival;
}

interface Scale {
  x: (time: number) => number;
  y: (arrived: number) => number;
  left: number;
  right: number;
  top: number;
  bottom: number;
  begins: number;
  ends: number;
}

function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function scaled(width: number, scene: Scene): Scale {
  const [left, right, top, bottom] = [8, width - 8, 8, HEIGHT - BARS - AXIS - 8];
  const ends = scene.until + scene.span * 0.04;
  const begins = scene.until - scene.span;
  return {
    left, right, top, bottom, begins, ends,
    x: (time) => left + ((time - begins) / (ends - begins)) * (right - left),
    y: (arrived) => bottom - 4 - ((scene.until - arrived) / scene.span) * (bottom - 4 - top),
  };
}

function step(span: number): number {
  return [1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000, 21_600_000].find((one) => span / one <= 8) ?? 86_400_000;
}

// Returns how far down the texts at the right are, so that no other is drawn over them.
function grid(pen: CanvasRenderingContext2D, scale: Scale, scene: Scene): number[] {
  const every = Math.max(scene.every || 0, step(scene.span * (scale.right > 600 ? 1 : 1.6)));
  pen.strokeStyle = ink("--line");
  pen.fillStyle = ink("--soft");
  pen.lineWidth = 1;
  pen.textAlign = "center";
  for (let tick = Math.ceil(scale.begins / every) * every; tick <= scale.ends; tick += every) {
    const across = Math.round(scale.x(tick)) + 0.5;
    pen.beginPath();
    pen.moveTo(across, scale.top);
    pen.lineTo(across, scale.bottom);
    pen.stroke();
    if (across > 24 && across < scale.right - 16) pen.fillText(clock(tick, every), across, HEIGHT - 6);
  }
  pen.textAlign = "left";
  const texts: number[] = [];
  for (let tick = Math.ceil(scale.begins / every) * every; tick <= scene.until; tick += every) {
    const down = Math.round(scale.y(tick)) + 0.5;
    // The events of that arrival are left of the text, but for the newest ones, which would be under it.
    if (down < scale.top + 12 || scale.x(tick) > scale.right - 150) continue;
    pen.beginPath();
    pen.moveTo(scale.left, down);
    pen.lineTo(scale.right, down);
    pen.stroke();
    const text = `arrived ${clock(tick, every)}`;
    const wide = pen.measureText(text).width;
    plate(pen, scale.right - wide, down - 5, wide);
    pen.fillStyle = ink("--soft");
    pen.fillText(text, scale.right - wide, down - 5);
    texts.push(down - 5);
  }
  return texts;
}

function clock(tick: number, every: number): string {
  return new Date(tick).toISOString().slice(11, every % 60_000 ? 19 : 16);
}

function events(pen: CanvasRenderingContext2D, scale: Scale, known: Known, until: number): Placed[] {
  const placed: Placed[] = [];
  pen.fillStyle = ink("--accent");
  pen.globalAlpha = 0.5;
  for (const dot of known.dots) {
    const at = { x: scale.x(dot.time), y: scale.y(dot.arrived), dot };
    if (dot.arrived > until || at.y < scale.top || at.x < scale.left || at.x > scale.right) continue;
    pen.fillRect(at.x - 1.25, at.y - 1.25, 2.5, 2.5);
    placed.push(at);
  }
  pen.globalAlpha = 1;
  return placed;
}

function missed(pen: CanvasRenderingContext2D, scale: Scale, known: Known, scene: Scene): Placed[] {
  const placed: Placed[] = [];
  pen.fillStyle = ink("--bad");
  for (const dot of known.late) {
    const at = { x: scale.x(dot.time), y: scale.y(dot.arrived), dot };
    if (dot.arrived > scene.until || at.y < scale.top || at.x < scale.left || at.x > scale.right) continue;
    pen.fillRect(at.x - 3, at.y - 3, 6, 6);
    placed.push(at);
  }
  const last = placed[placed.length - 1];
  if (last && last.y < scale.bottom - 4 && scale.right > 600) {
    // An arrow from the newest late event to where it went.
    const text = `late, to ${scene.side}`;
    const wide = pen.measureText(text).width;
    const [across, down] = [Math.max(scale.left + 4, Math.min(last.x - wide - 30, scale.right - wide - 40)), Math.min(last.y - 22, scale.bottom - 30)];
    plate(pen, across, down, wide);
    pen.fillStyle = ink("--bad");
    pen.strokeStyle = ink("--bad");
    pen.fillText(text, across, down);
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(last.x - 3, last.y - 3);
    pen.lineTo(across + wide + 8, down - 4);
    pen.lineTo(across + wide + 14, down - 8);
    pen.moveTo(across + wide + 8, down - 4);
    pen.lineTo(across + wide + 15, down - 2);
    pen.stroke();
  }
  return placed;
}

function plate(pen: CanvasRenderingContext2D, across: number, down: number, wide: number): void {
  pen.fillStyle = ink("--bg");
  pen.globalAlpha = 0.85;
  pen.fillRect(across - 3, down - 12, wide + 6, 16);
  pen.globalAlpha = 1;
}

function watermark(pen: CanvasRenderingContext2D, scale: Scale, known: Known, scene: Scene, texts: number[]): number | null {
  const marks = known.marks.filter((mark) => mark.at <= scene.until);
  const last = marks[marks.length - 1];
  if (!last) return null;
  pen.save();
  pen.beginPath();
  pen.rect(scale.left, scale.top, scale.right - scale.left, scale.bottom - scale.top);
  pen.clip();
  pen.strokeStyle = ink("--ink");
  pen.lineWidth = 1.5;
  pen.beginPath();
  let before: number | null = null;
  for (const mark of marks) {
    const [across, down] = [scale.x(mark.watermark), scale.y(mark.at)];
    // It stands until an epoch moves it: down first, then across.
    if (before === null) pen.moveTo(across, down);
    else {
      pen.lineTo(before, down);
      pen.lineTo(across, down);
    }
    before = across;
  }
  pen.lineTo(scale.x(last.watermark), scale.bottom);
  pen.stroke();
  pen.restore();
  const text = `watermark${scene.holder ? `, ${scene.holder}` : ""}`;
  const wide = pen.measureText(text).width;
  // No event is above the newest ones: the text stands there, and a line leads from it to where the watermark was in the middle of the time.
  const middle = marks.find((mark) => mark.at >= scene.until - scene.span / 2) ?? last;
  const [across, down] = [scale.x(middle.watermark), scale.y(middle.at)];
  const right = Math.min(across + 40, scale.right - wide - 8);
  let up = Math.max(down - 56, scale.top + 12);
  while (up > scale.top + 12 && texts.some((text) => Math.abs(text - up) < 18)) up -= 2;
  pen.strokeStyle = ink("--soft");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(across, down);
  pen.lineTo(right - 2, up + 4);
  pen.stroke();
  plate(pen, right, up, wide);
  pen.fillStyle = ink("--ink");
  pen.fillText(text, right, up);
  return last.watermark;
}

function windows(pen: CanvasRenderingContext2D, scale: Scale, known: Known, scene: Scene, mark: number | null): void {
  if (!scene.every) return;
  const most = Math.max(...known.windows.values(), 1);
  for (const [start, number] of known.windows) {
    const [from, to] = [Math.max(scale.left, scale.x(start)), Math.min(scale.right, scale.x(start + scene.every))];
    if (to <= from + 2 || start > scene.until) continue;
    const closed = mark !== null && mark >= start + scene.every;
    const top = HEIGHT - BARS - AXIS;
    pen.fillStyle = closed ? ink("--line") : ink("--panel");
    pen.strokeStyle = ink("--line");
    pen.lineWidth = 1;
    round(pen, from + 1.5, top + 0.5, to - from - 3, BARS - 6);
    pen.fill();
    if (!closed) {
      pen.fillStyle = ink("--accent-soft");
      round(pen, from + 1.5, top + 0.5, Math.max(2, (to - from - 3) * Math.min(1, number / most)), BARS - 6);
      pen.fill();
    }
    round(pen, from + 1.5, top + 0.5, to - from - 3, BARS - 6);
    pen.stroke();
    label(pen, [number, known.lateWindows.get(start) ?? 0], closed, from + 8, to - from - 16, top + 16);
    ticks(pen, known.panes.get(start) ?? [], scene.until, from + 8, to - from - 16, top + BARS - 8);
  }
}

// The results of a window, in the order in which they were emitted: a tall tick is the one on time.
function ticks(pen: CanvasRenderingContext2D, panes: Pane[], until: number, across: number, room: number, down: number): void {
  const shown = panes.filter((pane) => pane.emitted <= until).slice(-Math.max(0, Math.floor(room / 4)));
  shown.forEach((pane, number) => {
    pen.fillStyle = ink(pane.kind === "late" ? "--bad" : pane.kind === "early" ? "--accent" : "--ink");
    const high = pane.kind === "early" ? 4 : pane.kind === "late" ? 6 : 10;
    pen.fillRect(across + 4 * number, down - high, 2, high);
  });
}

function label(pen: CanvasRenderingContext2D, [number, late]: [number, number], closed: boolean, across: number, room: number, down: number): void {
  const plain = (number - (closed ? late : 0)).toLocaleString("en-US");
  const end = closed ? (late ? `, ${late} late` : "") : " so far";
  const text = [`${plain} events${end}`, `${plain}${end}`, plain].find((one) => pen.measureText(one).width <= room);
  if (!text) return;
  pen.fillStyle = ink("--ink");
  pen.fillText(text, across, down);
}

function round(pen: CanvasRenderingContext2D, x: number, y: number, wide: number, high: number): void {
  pen.beginPath();
  pen.roundRect(x, y, Math.max(1, wide), high, 4);
}

export function paint(canvas: HTMLCanvasElement, known: Known, scene: Scene): Placed[] {
  const width = canvas.clientWidth;
  const dense = window.devicePixelRatio || 1;
  canvas.width = width * dense;
  canvas.height = HEIGHT * dense;
  const pen = canvas.getContext("2d");
  if (!pen) return [];
  pen.scale(dense, dense);
  pen.font = "12px ui-sans-serif, system-ui, sans-serif";
  if (!known.dots.length && !known.late.length) {
    pen.fillStyle = ink("--soft");
    pen.fillText(known.looked ? "No events yet. Send some: headrace produce" : "Loading the events of the last minutes.", 8, 24);
    return [];
  }
  const scale = scaled(width, scene);
  const texts = grid(pen, scale, scene);
  const placed = events(pen, scale, known, scene.until);
  const mark = watermark(pen, scale, known, scene, texts);
  placed.push(...missed(pen, scale, known, scene));
  windows(pen, scale, known, scene, mark);
  return placed;
}
