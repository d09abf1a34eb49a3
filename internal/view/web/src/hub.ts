// One stream of events for all pages of a browser: it follows what any of them wants, and is closed when none wants
// anything. It runs in a shared worker, and in the page itself where a browser has none.

/** What a page follows: the list, and run directories, traces and threads by their ids. */
export interface Topic {
  list?: boolean;
  experiment?: string;
  trace?: string;
  thread?: string;
}

/** The id of the topic that something belongs to. */
type Named = Omit<Topic, "list">;

/** What a page hears: an event by its name, or whether the server answers. */
export type News = { event: string; data: Named } | { connected: boolean };

/** What a page says: what it follows now, under a number of its own; nothing when it has ended. */
export interface Wish {
  key: number;
  topic: Topic | null;
}

interface Follower {
  topic: Topic;
  tell: (news: News) => void;
}

const events = ["experiment", "watching", "status", "cells", "report", "trace", "thread"];
const retryMs = 2000;

export class Hub {
  private followers = new Map<string, Follower>();
  private source: EventSource | null = null;
  private stream = "";
  private told = "";
  /** What whoever follows something that others follow already must hear first. */
  private first = new Map<string, News>();

  follow(key: string, topic: Topic | null, tell: (news: News) => void): void {
    if (topic) this.followers.set(key, { topic, tell });
    else this.followers.delete(key);
    if (!this.followers.size) return this.close();
    if (!this.source) return this.open();
    void this.say();
    const first = topic && this.first.get(JSON.stringify(topic));
    if (first) tell(first);
  }

  /** Forgets everything that a page followed. */
  forget(prefix: string): void {
    for (const key of [...this.followers.keys()]) if (key.startsWith(prefix)) this.follow(key, null, () => undefined);
  }

  private close(): void {
    this.source?.close();
    this.source = null;
    this.stream = "";
  }

  private open(): void {
    const source = new EventSource("/api/events?list=0");
    this.source = source;
    source.onerror = () => {
      this.tell({ connected: false }, () => true);
      if (source.readyState !== EventSource.CLOSED || this.source !== source) return; // a browser tries again by itself
      this.close();
      setTimeout(() => this.followers.size && !this.source && this.open(), retryMs);
    };
    source.addEventListener("stream", (e) => {
      this.stream = (JSON.parse((e as MessageEvent<string>).data) as { id: string }).id;
      this.told = "";
      this.first.clear();
      this.tell({ connected: true }, () => true);
      void this.say();
    });
    for (const event of events) {
      source.addEventListener(event, (e) => {
        const data = JSON.parse((e as MessageEvent<string>).data) as Named;
        const { experiment, trace, thread } = data;
        if (event === "watching") this.first.set(JSON.stringify({ experiment }), { event, data });
        if (event === "trace" || event === "thread") this.first.set(JSON.stringify({ trace, thread }), { event, data });
        this.tell({ event, data }, (t) => {
          if (event === "experiment") return t.list === true;
          if (thread !== undefined) return t.thread === thread;
          return trace !== undefined ? t.trace === trace : t.experiment === experiment;
        });
      });
    }
  }

  private tell(news: News, wants: (topic: Topic) => boolean): void {
    for (const f of this.followers.values()) if (wants(f.topic)) f.tell(news);
  }

  /** Tells the server what is followed now. A stream that it does not know has ended, and another one begins. */
  private async say(): Promise<void> {
    const topics = [...this.followers.values()].map((f) => f.topic);
    const some = (list: (string | undefined)[]): string[] => [...new Set(list.filter((id) => id !== undefined))];
    const body = JSON.stringify({
      list: topics.some((t) => t.list),
      experiments: some(topics.map((t) => t.experiment)),
      traces: some(topics.map((t) => t.trace)),
      threads: some(topics.map((t) => t.thread)),
    });
    const stream = this.stream;
    if (!stream || body === this.told) return;
    this.told = body;
    try {
      await fetch("/api/events/" + stream, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    } catch {
      // the stream itself notices that the server has gone
    }
  }
}
