// What the page shows: the place in the URL, the jobs, and the job that is looked at.

import { computed, effect, signal } from "@preact/signals";
import { ask, listen } from "./server";
import type { Alerts, Health, Job } from "./types";

export const SCREENS = ["pipeline", "time", "views", "topics", "epochs", "late", "health"] as const;
export type Screen = (typeof SCREENS)[number];

export interface Place {
  job: string;
  screen: Screen;
  selected: string;
}

function read(): Place {
  const [job = "", screen = "", ...selected] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return { job, screen: (SCREENS as readonly string[]).includes(screen) ? (screen as Screen) : "pipeline", selected: selected.join("/") };
}

export const place = signal<Place>(read());
window.addEventListener("hashchange", () => (place.value = read()));

export function link(change: Partial<Place>): string {
  const next = { ...place.value, ...change };
  const parts = [next.job, next.screen, ...(next.selected ? [next.selected] : [])];
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function go(change: Partial<Place>): void {
  location.hash = link(change);
}

export const names = signal<string[] | null>(null);
export const role = signal<string>("read");
export const development = signal(false);
export const job = signal<Job | null>(null);
export const health = signal<Health | null>(null);
export const connected = signal(true);
export const heardAt = signal(Date.now());
export const now = signal(Date.now());
setInterval(() => (now.value = Date.now()), 1000);

// A job that says nothing for so long is told to be stale.
export const stale = computed(() => !connected.value || now.value - heardAt.value > 5000);

const JOBS = 5000;

// A server that started again may have other rights, and a home gets new jobs.
async function lookAround(): Promise<void> {
  const me = await ask<{ role: string; development: boolean }>("api/v1/me");
  role.value = me.role;
  development.value = me.development;
  const found = (await ask<{ app: string }[]>("api/v1/jobs")).map((one) => one.app);
  if (found.join("/") !== names.value?.join("/")) names.value = found;
}

export async function begin(): Promise<void> {
  for (;;) {
    try {
      await lookAround();
      connected.value = true;
      if (names.value?.length) break;
    } catch {
      connected.value = false;
    }
    await new Promise((again) => setTimeout(again, 1000));
  }
  if (!names.value.includes(place.value.job)) go({ job: names.value[0] ?? "", selected: "" });
  setInterval(() => void lookAround().catch(() => undefined), JOBS);
}

let listening = "";
let stop = (): void => undefined;
effect(() => {
  const wanted = names.value?.includes(place.value.job) ? place.value.job : "";
  if (wanted === listening) return;
  stop();
  listening = wanted;
  job.value = null;
  stop = wanted
    ? listen<Job>(`api/v1/jobs/${encodeURIComponent(wanted)}`, ["status"], {
        message(told) {
          job.value = told;
          heardAt.value = Date.now();
          connected.value = true;
        },
        state(up) {
          connected.value = up;
        },
      })
    : () => undefined;
});

async function examine(): Promise<void> {
  const name = place.value.job;
  if (!names.value?.includes(name)) return;
  try {
    const [told, alerts] = await Promise.all([
      ask<Health>(`api/v1/jobs/${encodeURIComponent(name)}/health`),
      // A server without alerts does not know the path.
      offersAlerts ? ask<Alerts>(`api/v1/jobs/${encodeURIComponent(name)}/alerts`).catch(() => undefined) : undefined,
    ]);
    if (name === place.value.job) health.value = { ...told, ...(alerts ? { alerts } : {}) };
  } catch {
    return;
  }
}
let offersAlerts = false;
async function learnPaths(): Promise<void> {
  const told = await ask<{ paths: Record<string, unknown> }>("openapi.json").catch(() => ({ paths: {} }));
  offersAlerts = "/api/v1/jobs/{name}/alerts" in told.paths;
}
export async function watchHealth(): Promise<void> {
  await learnPaths();
  await examine();
  setInterval(() => void examine(), 3000);
}
effect(() => {
  void place.value.job;
  health.value = null;
  void examine();
});

export const theme = signal<string>(localStorage.getItem("theme") ?? "");
effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  localStorage.setItem("theme", theme.value);
});
