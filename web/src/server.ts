// Questions to the server, and streams that come back by themselves after a cut.

import { parse, written } from "./json";

export interface Problem {
  status: number;
  detail: string;
  hint?: string;
}

export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const answer = await fetch(path, {
    credentials: "same-origin",
    ...(body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: written(body) }),
  });
  const content = parse<unknown>(await answer.text());
  if (!answer.ok) throw content as Problem;
  return content as T;
}

// What to say of a request that failed: the server's words, or that it gave none.
export function trouble(problem: unknown): string {
  const { detail, hint } = problem as Partial<Problem>;
  if (detail) return hint ? `${detail}: ${hint}` : detail;
  return "The server does not answer. Start it again: headrace serve";
}

export interface Listener<T> {
  message(told: T): void;
  state(connected: boolean): void;
}

const AGAIN = 1000;

// A stream for as long as the page is looked at. A browser has six connections to a host for all of its tabs: one that is hidden, or left
// and kept for the way back, must not hold any.
export function listen<T>(path: string, events: string[], listener: Listener<T>): () => void {
  let source: EventSource | undefined;
  let timer = 0;
  const open = (): void => {
    const opened = (source = new EventSource(path));
    opened.onopen = () => listener.state(true);
    opened.onerror = () => {
      listener.state(false);
      // After an answer that is an error, as of a server that is starting, a browser does not try again.
      if (opened.readyState === EventSource.CLOSED) timer = window.setTimeout(open, AGAIN);
    };
    for (const event of events) {
      opened.addEventListener(event, (told) => listener.message(parse<T>((told as MessageEvent<string>).data)));
    }
  };
  const close = (): void => {
    window.clearTimeout(timer);
    source?.close();
    source = undefined;
  };
  const follow = (): void => {
    close();
    listener.state(false);
    if (document.visibilityState === "visible") open();
  };
  document.addEventListener("visibilitychange", follow);
  if (document.visibilityState === "visible") open();
  return () => {
    document.removeEventListener("visibilitychange", follow);
    close();
  };
}
