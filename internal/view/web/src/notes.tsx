// What people wrote: notes and tags on a cell, and views of an experiment that they saved.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { asFailure, frozen, post, url, type Failure } from "./api";
import { visible } from "./format";
import { place } from "./router";
import type { CellDetail, Note } from "./types";
import { Copy, Empty, Link, Name, Problem, When } from "./ui";

const seals: Record<Note["seal"], string> = {
  own: "signed by you",
  foreign: "signed by another key",
  unsigned: "not signed",
  altered: "changed after it was signed",
};

/** Whose a note is. In a file it is read by somebody else. */
function sealOf(n: Note): string {
  return frozen && n.key && n.seal !== "altered" ? `signed with the key ${n.key.slice(0, 8)}` : seals[n.seal];
}

/** Sends something to the notes of an experiment, and has the page read again what they changed. */
function useWriting(id: string, changed: () => void): { write: (body: object) => Promise<boolean>; failure: Failure | null } {
  const [failure, setFailure] = useState<Failure | null>(null);
  async function write(body: object): Promise<boolean> {
    try {
      await post(url(`experiments/${encodeURIComponent(id)}/notes`), body);
      setFailure(null);
      changed();
      return true;
    } catch (e) {
      setFailure(asFailure(e));
      return false;
    }
  }
  return { write, failure };
}

export function Notes(props: { id: string; detail: CellDetail; onChange: () => void }): JSX.Element {
  const { task, arm, run } = props.detail.cell;
  const { write, failure } = useWriting(props.id, props.onChange);
  const [text, setText] = useState("");
  const [tags, setTags] = useState("");
  async function save(event: Event): Promise<void> {
    event.preventDefault();
    if (await write({ task, arm, run, text, tags: tags.split(/[\s,]+/).filter(Boolean) })) {
      setText("");
      setTags("");
    }
  }
  return (
    <>
      {props.detail.notes.map((n) => (
        <article key={n.id} class="note">
          <p class="soft">
            <Name text={n.by} /> · <When ms={n.atMs} /> · <span class={n.seal === "altered" ? "fail-text" : ""}>{visible(sealOf(n))}</span>
            {n.stale && " · about another result than this one"}
            {!frozen && (
              <button type="button" class="plain no-print" onClick={() => void write({ removes: n.id })}>
                remove
              </button>
            )}
          </p>
          {n.text && <p class="written">{visible(n.text)}</p>}
          <Tags list={n.tags} />
        </article>
      ))}
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
      {frozen ? (
        !props.detail.notes.length && <Empty title="Nobody has written a note." />
      ) : (
        <form class="note no-print" onSubmit={(e) => void save(e)}>
          <textarea aria-label="Note" placeholder="What is worth knowing about this run" rows={2} value={text} onInput={(e) => setText(e.currentTarget.value)} />
          <div class="tools">
            <input type="text" aria-label="Tags" placeholder="tags, e.g. flaky to-read" value={tags} onInput={(e) => setTags(e.currentTarget.value)} />
            <button type="submit" disabled={!text.trim() && !tags.trim()}>
              Save note
            </button>
          </div>
        </form>
      )}
    </>
  );
}

export function Tags(props: { list: string[] | null | undefined }): JSX.Element | null {
  if (!props.list?.length) return null;
  return (
    <span class="tag-list">
      {props.list.map((tag) => (
        <span key={tag} class="tag">
          <Name text={tag} max={40} />
        </span>
      ))}
    </span>
  );
}

/** The views of an experiment that somebody saved, and a way to keep or to share the one that is shown. */
export function Views(props: { id: string; list: Note[]; onChange: () => void }): JSX.Element | null {
  const { write, failure } = useWriting(props.id, props.onChange);
  const [name, setName] = useState<string | null>(null);
  const view = place.value.query.toString();
  if (frozen) return null;
  async function save(event: Event): Promise<void> {
    event.preventDefault();
    if (name && (await write({ view, text: name }))) setName(null);
  }
  return (
    <div class="views no-print">
      {props.list.map((v) => (
        <span key={v.id}>
          <Link to={["x", props.id]} query={Object.fromEntries(new URLSearchParams(v.view))} current={v.view === view} title={visible(`saved by ${v.by}, ${seals[v.seal]}`)}>
            <Name text={v.text ?? ""} max={32} />
          </Link>
          <button type="button" class="plain" aria-label={visible(`Remove the view ${v.text ?? ""}`)} onClick={() => void write({ removes: v.id })}>
            ×
          </button>
        </span>
      ))}
      {view && name === null && (
        <>
          <Copy text={() => location.href} label="copy link" />
          <button type="button" class="plain" onClick={() => setName("")}>
            save view
          </button>
        </>
      )}
      {view && name !== null && (
        <form class="row" onSubmit={(e) => void save(e)}>
          <input type="text" aria-label="Name of the view" placeholder="name of this view" value={name} ref={(e) => e?.focus()} onInput={(e) => setName(e.currentTarget.value)} />
          <button type="submit" disabled={!name.trim()}>
            Save
          </button>
          <button type="button" class="plain" onClick={() => setName(null)}>
            cancel
          </button>
        </form>
      )}
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
    </div>
  );
}
