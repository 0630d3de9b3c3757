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

export function listen<T>(path: string, events: string[], listener: Listener<T>): () => void {
  let source: EventSource;
  let timer = 0;
  const open = (): void => {
    source = new EventSource(path);
    source.onopen = () => listener.state(true);
    source.onerror = () => {
      listener.state(false);
      // After an answer that is an error, as of a server that is starting, a browser does not try again.
      if (source.readyState === EventSource.CLOSED) timer = window.setTimeout(open, AGAIN);
    };
    for (const event of events) {
      source.addEventListener(event, (told) => listener.message(parse<T>((told as MessageEvent<string>).data)));
    }
  };
  open();
  return () => {
    window.clearTimeout(timer);
    source.close();
  };
}
