import { render, type JSX } from "preact";
import { frozen, onBridge } from "./api";
import { applyTheme, Bar, Help, Origin } from "./frame";
import { listenToKeys } from "./keys";
import { CellPage } from "./pages/cell";
import { ExperimentPage } from "./pages/experiment";
import { ExperimentsPage } from "./pages/experiments";
import { LabelsPage } from "./pages/labels";
import { SideBySidePage } from "./pages/align";
import { SkillPage } from "./pages/skill";
import { ThreadPage } from "./pages/thread";
import { ThreadsPage } from "./pages/threads";
import { TracePage } from "./pages/trace";
import { VersusPage } from "./pages/versus";
import { followAddress, parts, place } from "./router";
import { Empty, Page } from "./ui";
import "./styles/base.css";
import "./styles/pages.css";
import "./styles/trace.css";
import "./styles/thread.css";

function App(): JSX.Element {
  return (
    <>
      <Current />
      <Origin />
      <Help />
    </>
  );
}

// Addresses: / · /x/ID · /x/ID/TASK/ARM/RUN · /versus/ID · /skill/ID · /labels/ID · /trace/T · /align/T/U;
// of a bridge: / · /thread/ID · /trace/RUN.
function Current(): JSX.Element {
  const [kind, id, ...rest] = parts(place.value.path);
  if (kind === undefined) return onBridge ? <ThreadsPage /> : <ExperimentsPage />;
  if (id !== undefined) {
    switch (kind) {
      case "x":
        if (rest.length === 3) return <CellPage key={id} id={id} task={rest[0] as string} arm={rest[1] as string} run={rest[2] as string} />;
        return <ExperimentPage key={id} id={id} />;
      case "versus":
        return <VersusPage key={id} id={id} />;
      case "skill":
        return <SkillPage key={id} id={id} />;
      case "labels":
        return <LabelsPage key={id} id={id} />;
      case "thread":
        return <ThreadPage key={id} id={id} />;
      case "trace":
        return <TracePage key={id} trace={id} />;
      case "align":
        return <SideBySidePage a={id} b={rest[0] ?? ""} />;
    }
  }
  return (
    <>
      <Bar crumbs={[]} />
      <Page title="Not found">
        <Empty title="There is no such page.">
          <p>
            <a href="#/">{onBridge ? "All threads" : "All experiments"}</a>
          </p>
        </Empty>
      </Page>
    </>
  );
}

applyTheme();
followAddress(frozen?.start);
listenToKeys();
render(<App />, document.getElementById("app") as HTMLElement);
