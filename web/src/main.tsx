import "./style.css";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Bar, Screens } from "./bar";
import { EpochsScreen } from "./epochs";
import { HealthScreen } from "./health";
import { LateScreen } from "./late";
import { Keys, Palette } from "./palette";
import { PipelineScreen } from "./pipeline";
import { SCREENS, begin, connected, go, heardAt, job, names, place, stale, watchHealth } from "./state";
import { clock, count, moment } from "./format";
import { TimeScreen } from "./time";
import { TopicsScreen } from "./topics";
import { ViewsScreen } from "./views";

const SHOWN = {
  pipeline: PipelineScreen,
  time: TimeScreen,
  views: ViewsScreen,
  topics: TopicsScreen,
  epochs: EpochsScreen,
  late: LateScreen,
  health: HealthScreen,
};

function Stale() {
  if (!stale.value || names.value === null) return null;
  const since = clock(new Date(heardAt.value).toISOString());
  return (
    <div class="notice stale" role="status">
      {connected.value ? `No news from the job since ${since}.` : `The server does not answer since ${since}. Start it again: `}
      {connected.value ? "" : <code>headrace serve</code>}
    </div>
  );
}

// Why a job does not run, on every screen, with what would start it.
function Stopped() {
  const told = job.value;
  if (told === null || told.state === "running" || stale.value) return null;
  const wrong = told.state === "failed" || told.state === "killed";
  return (
    <div class={wrong ? "notice failed" : "notice"} role="status" data-stopped={told.state}>
      <span>
        The job {told.state === "never ran" ? "never ran" : `is ${told.state}`}
        {told.since ? ` since ${moment(told.since)} UTC` : ""}, at epoch {count(told.epoch)}
        {wrong && told.last_error ? `: ${told.last_error}` : ""}. Start it again: <code>headrace run app.py</code>
      </span>
    </div>
  );
}

function Content() {
  if (names.value === null) {
    return (
      <p class="empty">
        {connected.value ? (
          "Loading the jobs."
        ) : (
          <>
            The server does not answer. Start it: <code>headrace serve</code>
          </>
        )}
      </p>
    );
  }
  if (!names.value.length) {
    return (
      <p class="empty">
        No job has run in this home yet. Run one: <code>headrace run app.py</code>
      </p>
    );
  }
  if (!names.value.includes(place.value.job)) {
    return (
      <p class="empty">
        There is no job {place.value.job} in this home. It is here once it has run: <code>headrace run app.py</code>
      </p>
    );
  }
  const Screen = SHOWN[place.value.screen];
  return job.value === null ? <p class="empty">Loading {place.value.job}.</p> : <Screen job={job.value} />;
}

function Page() {
  const [open, setOpen] = useState<"" | "palette" | "keys">("");
  useEffect(() => {
    function pressed(event: KeyboardEvent): void {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLSelectElement;
      if ((event.metaKey || event.ctrlKey) && event.key === "k") {
        event.preventDefault();
        setOpen("palette");
      } else if (event.key === "Escape") setOpen("");
      else if (!typing && event.key === "?") setOpen("keys");
      else if (!typing && !event.metaKey && !event.ctrlKey && !event.altKey && SCREENS[Number(event.key) - 1]) {
        go({ screen: SCREENS[Number(event.key) - 1] ?? "pipeline", selected: "" });
      }
      else if (!typing && event.key === "/") {
        const filter = document.querySelector<HTMLInputElement>("input[data-filter]");
        if (filter) {
          event.preventDefault();
          filter.focus();
        }
      }
    }
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <Bar />
      <Screens onPalette={() => setOpen("palette")} />
      <Stale />
      <Stopped />
      <main>
        <Content />
      </main>
      {open === "palette" && <Palette onClose={() => setOpen("")} />}
      {open === "keys" && <Keys onClose={() => setOpen("")} />}
    </>
  );
}

const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(<Page />, root);
}
void begin().then(watchHealth);
