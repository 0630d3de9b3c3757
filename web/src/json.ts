// JSON with whole numbers of any size: a bigint of a table may be beyond 2^53, where a number would show another one.

interface Source {
  source?: string;
}

function exact(_name: string, told: unknown, context?: Source): unknown {
  const source = context?.source;
  return typeof told === "number" && !Number.isSafeInteger(told) && source && /^-?\d+$/.test(source) ? BigInt(source) : told;
}

export function parse<T>(text: string): T {
  // To ask for each number costs time, and most answers have no large one.
  return (/\d{16}/.test(text) ? JSON.parse(text, exact) : JSON.parse(text)) as T;
}

const raw = (JSON as unknown as { rawJSON?: (text: string) => unknown }).rawJSON;

export function written(told: unknown, indent?: number): string {
  return JSON.stringify(told, (_name, part: unknown) => (typeof part === "bigint" ? (raw ? raw(String(part)) : String(part)) : part), indent);
}
