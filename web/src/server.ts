// Questions to the server, and streams that come back by themselves after a cut.

export interface Problem {
  status: number;
  detail: string;
  hint?: string;
}

export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const answer = await fetch(path, {
    credentials: "same-origin",
    ...(body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
  });
  const content = await answer.json();
  if (!answer.ok) throw content as Problem;
  return content as T;
}

export interface Listener<T> {
  message(told: T): void;
  state(connected: boolean): void;
}

export function listen<T>(path: string, events: string[], listener: Listener<T>): () => void {
  const source = new EventSource(path);
  source.onopen = () => listener.state(true);
  source.onerror = () => listener.state(false);
  for (const event of events) {
    source.addEventListener(event, (told) => listener.message(JSON.parse((told as MessageEvent<string>).data) as T));
  }
  return () => source.close();
}
