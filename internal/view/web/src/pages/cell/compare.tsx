// From a cell to the same task and run of another arm, side by side.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { api, asFailure, frozen, useApi, url } from "../../api";
import { visible } from "../../format";
import { go, href } from "../../router";
import type { CellDetail, ExperimentDetail } from "../../types";

export function SideBySide(props: { id: string; detail: CellDetail; trace: string }): JSX.Element | null {
  const { cell } = props.detail;
  const experiment = useApi<ExperimentDetail>(frozen ? null : url(`experiments/${encodeURIComponent(props.id)}`)).data?.experiment;
  const [said, setSaid] = useState("");
  const others = (experiment?.arms ?? []).map((a) => a.name).filter((name) => name !== cell.arm);
  if (!others.length) return null;
  async function open(arm: string): Promise<void> {
    const path = ["experiments", props.id, "cells", cell.task, arm, String(cell.run)].map(encodeURIComponent).join("/");
    try {
      const other = await api<CellDetail>(url(path));
      const trace = other.traces?.find((t) => t.role === "agent")?.trace;
      if (trace) go(href(["align", props.trace, trace]));
      else setSaid(`${arm} has no trace of this run yet`);
    } catch (e) {
      setSaid(asFailure(e).message);
    }
  }
  return (
    <span class="no-print">
      {others.slice(0, 6).map((arm) => (
        <button key={arm} type="button" class="plain" onClick={() => void open(arm)}>
          side by side with {visible(arm)}
        </button>
      ))}
      <span role="status">{visible(said)}</span>
    </span>
  );
}
