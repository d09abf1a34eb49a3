// One thread of a bridge, live: who works and what it costs, what was said, and what a person can do about it.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { api, asFailure, post, useApi, url, type Failure } from "../../api";
import { liveRun, State, Write } from "../../discussion";
import { bytes, count, money, visible, whole } from "../../format";
import { Bar } from "../../frame";
import { useEvents } from "../../live";
import type { Members, Thread, ThreadList, ThreadPost, ThreadView } from "../../types";
import { Link, Name, Page, Problem, Reading, Scroll, When } from "../../ui";

/** A thread as far as it was read. */
class Reader {
  readonly thread = signal<Thread | null>(null);
  readonly posts = signal<ThreadPost[]>([]);
  readonly failure = signal<Failure | null>(null);
  private reading = false;
  private again = false;

  constructor(readonly id: string) {}

  /** Reads what is new. What changes meanwhile is read afterwards. */
  async read(): Promise<void> {
    this.again = true;
    if (this.reading) return;
    this.reading = true;
    while (this.again) {
      this.again = false;
      try {
        const after = this.posts.peek().at(-1)?.n ?? 0;
        const view = await api<ThreadView>(url(`threads/${encodeURIComponent(this.id)}`, [["after", after]]));
        if (view.posts.length) this.posts.value = [...this.posts.peek(), ...view.posts];
        this.again ||= (this.posts.peek().at(-1)?.n ?? 0) < view.thread.last;
        this.thread.value = view.thread;
        this.failure.value = null;
      } catch (e) {
        this.failure.value = asFailure(e);
      }
    }
    this.reading = false;
  }
}

export function ThreadPage(props: { id: string }): JSX.Element {
  const reader = useMemo(() => new Reader(props.id), [props.id]);
  const path = `threads/${encodeURIComponent(props.id)}`;
  const members = useApi<Members>(url(path + "/members"));
  const me = useApi<ThreadList>(url("threads")).data?.person;
  useEffect(() => void reader.read(), [reader]);
  const thread = reader.thread.value;
  const doing = thread && liveRun(thread);
  const changed = (): void => {
    void reader.read();
    members.reload();
  };
  useEvents({ thread: props.id }, { thread: changed });
  useEvents(doing?.state === "running" ? { trace: doing.id } : null, { trace: members.reload });
  const failure = reader.failure.value;
  return (
    <>
      <Bar crumbs={[{ text: thread?.title ?? "thread" }]} />
      <Page title={thread?.title ?? "thread"}>
        {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
        {!thread && !failure && <Reading />}
        {thread && (
          <>
            <h1 class="sentence">{visible(thread.title)}</h1>
            <div class="tools">
              <span role="status">
                <State thread={thread} />
              </span>
              <span class="soft">{cost(thread, members.data)}</span>
              {thread.askedIn && <Link to={["thread", thread.askedIn]}>the thread that asked</Link>}
              <Actions path={path} thread={thread} done={changed} />
            </div>
            <AtWork data={members.data} live={doing?.state === "running"} />
            <Posts list={reader.posts.value} traces={members.data?.traces ?? []} />
            <Write to={path + "/posts"} by={me ?? ""} label="Post" placeholder="What the discussion should know" sent={() => void reader.read()} />
          </>
        )}
      </Page>
    </>
  );
}

/** What a thread has cost: runs that have ended, and the one that is live as far as it is known. */
function cost(thread: Thread, members?: Members): string {
  const run = liveRun(thread);
  const now = run && members?.run === run.id ? members.costUsd : 0;
  const known = run === undefined || now !== null;
  return `${known ? "" : "at least "}${money(thread.costUsd + (now ?? 0))} so far, ${count(thread.runs.length, "run")}`;
}

/** What a person can do about a thread as it is. */
function Actions(props: { path: string; thread: Thread; done: () => void }): JSX.Element {
  const { thread } = props;
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const run = liveRun(thread);
  const works = run !== undefined && run.state !== "paused";
  async function act(what: string): Promise<void> {
    setBusy(true);
    try {
      await post(url(`${props.path}/${what}`), {});
      setFailure(null);
    } catch (e) {
      setFailure(asFailure(e));
    } finally {
      setBusy(false);
      props.done();
    }
  }
  const button = (what: string, title: string): JSX.Element => (
    <button type="button" disabled={busy} onClick={() => void act(what)} title={title}>
      {what}
    </button>
  );
  return (
    <span class="controls no-print">
      {works && button("recess", "Suspend the discussion; resume continues it where it is")}
      {thread.state === "recessed" && button("resume", "End the recess now")}
      {run && button("stop", "End the run; its thread has failed")}
      {thread.state !== "adjourned" && button("adjourn", "End the discussion")}
      {failure && <Problem message={failure.message}>{failure.hint}</Problem>}
    </span>
  );
}

/** Who takes part in the last run, who of them works now, and what each costs. */
function AtWork(props: { data?: Members; live: boolean }): JSX.Element | null {
  const { data } = props;
  if (!data?.members.length) return null;
  const working = props.live ? data.members.filter((m) => m.working).map((m) => m.lane) : [];
  return (
    <details class="at-work" open>
      <summary>
        {working.length ? visible(`${working.join(", ")} ${working.length === 1 ? "works" : "work"}`) : props.live ? "nobody works just now" : count(data.members.length, "member")}
      </summary>
      <Scroll label="Members">
        <table>
          <thead>
            <tr>
              <th scope="col">member</th>
              <th scope="col">agent</th>
              <th scope="col">model</th>
              <th scope="col" class="num">
                turns
              </th>
              <th scope="col" class="num">
                cost
              </th>
              <th scope="col">now</th>
            </tr>
          </thead>
          <tbody>
            {data.members.map((m) => (
              <tr key={m.lane}>
                <td>
                  <Link to={["trace", data.run]} query={{ lane: m.lane }} title="the trace of this member">
                    <Name text={m.lane} />
                  </Link>
                </td>
                <td>
                  <Name text={m.agent ?? ""} />
                </td>
                <td>
                  <Name text={m.model ?? ""} />
                </td>
                <td class="num">{whole(m.turns)}</td>
                <td class="num">{money(m.costUsd)}</td>
                <td>{working.includes(m.lane) ? <span class="running-text">works</span> : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </details>
  );
}

const shownPosts = 200;
const shownText = 20_000;

function Posts(props: { list: ThreadPost[]; traces: string[] }): JSX.Element {
  const [all, setAll] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  const { list } = props;
  const below = useRef(false);
  const before = end.current; // whoever reads the end goes on reading it
  below.current = before !== null && before.getBoundingClientRect().top <= innerHeight;
  useEffect(() => {
    if (below.current) end.current?.scrollIntoView({ block: "nearest" });
  }, [list.length]);
  const shown = all ? list : list.slice(-shownPosts);
  return (
    <>
      {shown.length < list.length && (
        <button type="button" onClick={() => setAll(true)}>
          {count(list.length - shown.length, "earlier post")}
        </button>
      )}
      <div role="log" aria-label="Posts">
        {shown.map((p) => (
          <PostOf key={p.n} post={p} trace={p.run && props.traces.includes(p.run) ? p.run : ""} />
        ))}
      </div>
      <div ref={end} />
    </>
  );
}

function PostOf(props: { post: ThreadPost; trace: string }): JSX.Element {
  const { role, author, body, at } = props.post;
  const [whole, setWhole] = useState(false);
  const cut = !whole && body.length > shownText;
  return (
    <article class={"post " + role}>
      <div class="row soft">
        {author && (role === "end" ? <strong>{visible(author)}</strong> : <Name text={author} />)}
        <When ms={at} />
        {props.trace && role !== "person" && (
          <Link to={["trace", props.trace]} query={{ lane: role === "agent" ? author : undefined }}>
            trace
          </Link>
        )}
      </div>
      <p class="written">{visible(cut ? body.slice(0, shownText) : body)}</p>
      {cut && (
        <button type="button" onClick={() => setWhole(true)}>
          show all {bytes(new Blob([body]).size)}
        </button>
      )}
    </article>
  );
}
