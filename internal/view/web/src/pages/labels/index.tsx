// Labelling, blind: a person says whether a run passes, without knowing whose it is.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { asFailure, post, useApi, url, type Failure } from "../../api";
import { visible } from "../../format";
import { Bar } from "../../frame";
import { useKeys } from "../../keys";
import { place, setQuery } from "../../router";
import type { ExperimentDetail } from "../../types";
import { Empty, Page, Problem } from "../../ui";

interface Labels {
  dimensions: { name: string; pass: number; fail: number; left: number; status: string }[] | null;
  item: { item: string; evidence: string; question: string; guide: string } | null;
}

export function LabelsPage(props: { id: string }): JSX.Element {
  const dimension = place.value.query.get("dimension") ?? "correctness";
  const path = `experiments/${encodeURIComponent(props.id)}/labels`;
  const [skipped, setSkipped] = useState<string[]>([]);
  const loaded = useApi<Labels>(url(path, [["dimension", dimension], ["skip", skipped.join(",")]]));
  const name = useApi<ExperimentDetail>(url(`experiments/${encodeURIComponent(props.id)}`)).data?.experiment.name;
  const [after, setAfter] = useState<{ for: string; data: Labels } | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const here = dimension + "\n" + skipped.join(",");
  const data = after?.for === here ? after.data : loaded.data;
  const item = data?.item ?? null;
  async function label(pass: boolean): Promise<void> {
    if (!item) return;
    try {
      setAfter({ for: here, data: await post<Labels>(url(path), { dimension, item: item.item, pass }) });
      setFailure(null);
      scrollTo(0, 0);
    } catch (e) {
      setFailure(asFailure(e));
    }
  }
  const skip = (): void => {
    if (item) setSkipped((list) => [...list, item.item]);
  };
  useKeys(
    [
      { keys: "p", does: "it passes", run: () => void label(true) },
      { keys: "f", does: "it fails", run: () => void label(false) },
      { keys: "s", does: "skip it for now", run: skip },
    ],
    [item],
  );
  const trouble = failure ?? loaded.failure;
  return (
    <>
      <Bar crumbs={[{ text: name ?? "experiment", to: ["x", props.id] }, dimension === "sentences" ? { text: "skill", to: ["skill", props.id] } : { text: "head to head", to: ["versus", props.id] }, { text: "labels" }]} />
      <Page title="Labels">
        {trouble?.status === 409 ? <Empty title={trouble.message}>{visible(trouble.hint)}</Empty> : trouble && <Problem message={trouble.message}>{visible(trouble.hint)}</Problem>}
        {data && (
          <div class="tools">
            <select class="wide" aria-label="Dimension" value={dimension} onChange={(e) => setQuery({ dimension: e.currentTarget.value })}>
              {(data.dimensions ?? []).map((d) => (
                <option key={d.name} value={d.name}>
                  {visible(`${d.name}: ${d.pass} pass, ${d.fail} fail, ${d.left} left, ${d.status}`)}
                </option>
              ))}
            </select>
          </div>
        )}
        {item && (
          <>
            <h1 class="sentence">{visible(item.question)}</h1>
            <p class="soft guide">{visible(item.guide)}</p>
            <div class="tools label-buttons">
              <button type="button" onClick={() => void label(true)}>
                passes <kbd>p</kbd>
              </button>
              <button type="button" onClick={() => void label(false)}>
                fails <kbd>f</kbd>
              </button>
              <button type="button" onClick={skip}>
                skip <kbd>s</kbd>
              </button>
              <span class="soft">Whose run this is, and what the judges said, stays hidden until you have labelled it.</span>
            </div>
            <pre class="evidence-text" tabIndex={0}>
              {visible(item.evidence)}
            </pre>
          </>
        )}
        {data && !item && !trouble && <Empty title={dimension === "sentences" ? "Somebody has decided about every sentence." : "Every run of this dimension has a label."} />}
      </Page>
    </>
  );
}
