// A view taken along: as SQL, curl or Python, or as a file.

import { useState } from "preact/hooks";

const FILES = ["csv", "arrow", "parquet"] as const;
// As many rows as the server gives in one answer.
const MOST = 10_000;

export function Copies(props: { view: string }) {
  const { view } = props;
  const [copied, setCopied] = useState("");
  const address = location.origin;
  const texts: Record<string, string> = {
    SQL: `select * from ${view} limit 100`,
    curl: `curl -H "Authorization: Bearer $TOKEN" "${address}/api/v1/views/${view}"`,
    Python: `import headrace as hr\n\nhr.connect("${address}", token=token).view("${view}").to_pandas()`,
  };
  return (
    <span class="copies">
      <span class="soft">copy as</span>
      {Object.entries(texts).map(([name, text]) => (
        <button
          key={name}
          title={text}
          aria-label={`copy as ${name}`}
          onClick={() => {
            void navigator.clipboard?.writeText(text).catch(() => undefined);
            setCopied(name);
          }}
        >
          {name}
        </button>
      ))}
      <span role="status" class="soft">
        {copied && "copied"}
      </span>
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
