// Ctrl-K: go anywhere by name. ?: which keys there are.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { TITLES } from "./bar";
import { SCREENS, job, names, place } from "./state";

interface Target {
  name: string;
  what: string;
  href: string;
}

function targets(): Target[] {
  const here = encodeURIComponent(place.value.job);
  const screens = SCREENS.map((screen) => ({ name: TITLES[screen], what: "screen", href: `#/${here}/${screen}` }));
  const steps = (job.value?.steps ?? []).map((step) => {
    const screen = step.kind === "view" ? "views" : step.kind === "late" || step.kind === "dead" ? "late" : "pipeline";
    return { name: step.name, what: step.kind, href: `#/${here}/${screen}/${encodeURIComponent(step.name)}` };
  });
  const jobs = (names.value ?? []).map((name) => ({ name, what: "job", href: `#/${encodeURIComponent(name)}/pipeline` }));
  return [...screens, ...steps, ...jobs];
}

function matching(text: string): Target[] {
  return targets()
    .filter((target) => target.name.toLowerCase().includes(text.toLowerCase()))
    .slice(0, 12);
}

export function Palette(props: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  // Before the next paint: what is typed right after Ctrl-K is for this field.
  useLayoutEffect(() => input.current?.focus(), []);
  const found = matching(text);
  function pressed(event: KeyboardEvent): void {
    if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") enter(input.current?.value ?? text);
  }
  function enter(typed: string): void {
    // What is typed may not be drawn yet.
    const target = typed === text ? found[chosen] : matching(typed)[0];
    if (!target) return;
    location.hash = target.href;
    props.onClose();
  }
  return (
    <div class="cover" onClick={props.onClose}>
      <div class="dialog" role="dialog" aria-modal="true" aria-label="go to" onClick={(event) => event.stopPropagation()}>
        <input
          ref={input}
          aria-label="name"
          placeholder="a screen, view, stream or job"
          value={text}
          onKeyDown={pressed}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setChosen(0);
          }}
        />
        {found.map((target, number) => (
          <a key={target.href} class={number === chosen ? "on" : ""} href={target.href} onClick={props.onClose}>
            {target.name} <span>{target.what}</span>
          </a>
        ))}
      </div>
    </div>
  );
}

const KEYS: [string, string][] = [
  ["Ctrl-K", "go to a screen, view, stream or job"],
  ["1 to 7", "the screens, from left to right"],
  ["/", "filter what is shown"],
  ["?", "these keys"],
  ["Esc", "close"],
];

export function Keys(props: { onClose: () => void }) {
  return (
    <div class="cover" onClick={props.onClose}>
      <div class="dialog" role="dialog" aria-modal="true" aria-label="keys">
        <dl>
          {KEYS.map(([key, what]) => (
            <>
              <dt key={key}>{key}</dt>
              <dd>{what}</dd>
            </>
          ))}
        </dl>
      </div>
    </div>
  );
}
