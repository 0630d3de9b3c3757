// A view taken along: as SQL, curl or Python, or as a file.

import { useState } from "preact/hooks";

const FILES = ["csv", "arrow", "parquet"] as const;
// As many rows as the server gives in one answer.
const MOST = 10_000;

export function Copies(props: { view: string }) {
  const { view } = props;
  const [copied, setCopied] = useState("");
  const [shown, setShown] = useState("");
  const address = location.origin;
  const texts: Record<string, string> = {
    SQL: `select * from ${/^[a-z_]\w*$/i.test(view) ? view : `"${view}"`} limit 100`,
    curl: `curl -H "Authorization: Bearer $TOKEN" "${address}/api/v1/views/${encodeURIComponent(view)}"`,
    Python: `import headrace as hr\n\nhr.connect("${address}", token=token).view("${view}").to_pandas()`,
  };
  // Without a clipboard, as over plain HTTP from another machine, the text is shown.
  async function copy(name: string, text: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(name);
      setShown("");
    } catch {
      setCopied("");
      setShown(text);
    }
  }
  return (
    <span class="copies">
      <span class="soft">copy as</span>
      {Object.entries(texts).map(([name, text]) => (
        <button
          key={name}
          title={text}
          aria-label={`copy as ${name}`}
          onClick={() => void copy(name, text)}
        >
          {name}
        </button>
      ))}
      <span role="status" class="soft">
        {copied && `copied ${copied}`}
      </span>
      {shown && <pre data-copy>{shown}</pre>}
    </span>
  );
}

export function Downloads(props: { view: string; rows: number }) {
  return (
    <span class="copies">
      <span class="soft">download{props.rows > MOST ? ` the first ${MOST.toLocaleString("en-US")}` : ""}</span>
      {FILES.map((kind) => (
        <a key={kind} class="button" href={`api/v1/views/${encodeURIComponent(props.view)}?format=${kind}&limit=${MOST}`} download={`${props.view}.${kind}`}>
          {kind === "csv" ? "CSV" : kind === "arrow" ? "Arrow" : "Parquet"}
        </a>
      ))}
    </span>
  );
}
