// What the pages of threads share: the state of a thread in words, and writing in one.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { asFailure, post, url, type Failure } from "./api";
import { absolute, count, visible } from "./format";
import type { Thread, ThreadRun } from "./types";
import { Problem } from "./ui";

/** The run that has not ended, if there is one. */
export function liveRun(t: Thread): ThreadRun | undefined {
  return t.runs.find((r) => r.state !== "ended");
}

export function State(props: { thread: Thread }): JSX.Element {
  const t = props.thread;
  const run = liveRun(t);
  if (run?.state === "running") return <span class="running-text">● live</span>;
  if (run?.state === "queued") return <span class="running-text">about to begin</span>;
  if (t.state === "recessed") return <span>in recess{waits(t)}</span>;
  return <span class={t.state === "failed" ? "fail-text" : ""}>{t.state}</span>;
}

/** What a recess waits for. */
function waits(t: Thread): string {
  switch (t.trigger?.kind) {
    case "missing_input":
      return `, until there ${t.trigger.replies === 1 ? "is 1 post" : `are ${count(t.trigger.replies ?? 1, "post")}`} more`;
    case "elapsed":
      return `, until ${absolute(t.dueAt)}`;
    case "escalation_needed":
      return visible(`: ${t.trigger.signal ?? ""}`);
  }
  return "";
}

export interface Posted {
  thread: string;
  n: number;
}

interface WriteProps {
  /** Where it is sent, below /api/. */
  to: string;
  by: string;
  label: string;
  placeholder: string;
  sent: (posted: Posted) => void;
}

/** A field to write in. A post that got no answer has the same key when it is sent again, so that it is there once. */
export function Write(props: WriteProps): JSX.Element {
  const [body, setBody] = useState("");
  const [key, setKey] = useState(newKey);
  const [sending, setSending] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  async function send(event: Event): Promise<void> {
    event.preventDefault();
    if (sending || !body.trim()) return;
    setSending(true);
    try {
      const posted = await post<Posted>(url(props.to), { body, key });
      setFailure(null);
      setBody("");
      setKey(newKey());
      props.sent(posted);
    } catch (e) {
      setFailure(asFailure(e));
    } finally {
      setSending(false);
    }
  }
  function write(text: string): void {
    setBody(text);
    if (failure) setKey(newKey()); // it is another post now
  }
  return (
    <form class="write no-print" onSubmit={(e) => void send(e)}>
      <textarea
        aria-label={props.label}
        placeholder={props.placeholder}
        rows={3}
        value={body}
        onInput={(e) => write(e.currentTarget.value)}
        onKeyDown={(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && void send(e)}
      />
      <div class="row">
        <button type="submit" disabled={sending || !body.trim()}>
          {props.label}
        </button>
        <span class="soft">as {visible(props.by)}</span>
      </div>
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
    </form>
  );
}

function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}
