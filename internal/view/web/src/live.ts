// Live updates for components: what they follow goes to the one stream of the browser.
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { frozen } from "./api";
import { Hub, type News, type Topic, type Wish } from "./hub";

/** False while the stream of live updates is broken. */
export const connected = signal(true);

interface Line {
  send: (wish: Wish | "gone") => void;
}

const wishes = new Map<number, { topic: Topic; hear: (news: News) => void }>();
let line: Line | null = null;
let keys = 0;

function dial(): Line {
  if (line) return line;
  const hear = (key: number, news: News): void => wishes.get(key)?.hear(news);
  if ("SharedWorker" in window) {
    const { port } = new SharedWorker("follow.js");
    port.onmessage = (e: MessageEvent<{ key: number; news: News }>) => hear(e.data.key, e.data.news);
    line = { send: (wish) => port.postMessage(wish) };
  } else {
    const hub = new Hub();
    line = {
      send: (wish) => (wish === "gone" ? hub.forget("") : hub.follow(String(wish.key), wish.topic, (news) => hear(wish.key, news))),
    };
  }
  addEventListener("pagehide", () => line?.send("gone"));
  addEventListener("pageshow", (e) => {
    if (e.persisted) for (const [key, { topic }] of wishes) line?.send({ key, topic });
  });
  return line;
}

/** Follows a topic while a component is shown; handlers are named by event. Null follows nothing. */
export function useEvents(topic: Topic | null, handlers: Record<string, (data: never) => void>): void {
  const latest = useRef(handlers);
  latest.current = handlers;
  const wanted = topic && JSON.stringify(topic);
  useEffect(() => {
    if (frozen || wanted === null) return;
    const key = ++keys;
    const topic = JSON.parse(wanted) as Topic;
    const hear = (news: News): void => {
      if ("connected" in news) connected.value = news.connected;
      else latest.current[news.event]?.(news.data as never);
    };
    wishes.set(key, { topic, hear });
    dial().send({ key, topic });
    return () => {
      wishes.delete(key);
      dial().send({ key, topic: null });
      if (!wishes.size) connected.value = true;
    };
  }, [wanted]);
}
