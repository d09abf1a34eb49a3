// The shared worker of all pages of a browser.
import { Hub, type Wish } from "./hub";

const hub = new Hub();
let pages = 0;

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0] as MessagePort;
  const page = `${++pages}/`;
  port.onmessage = (e: MessageEvent<Wish | "gone">) => {
    if (e.data === "gone") hub.forget(page);
    else {
      const { key, topic } = e.data;
      hub.follow(page + key, topic, (news) => port.postMessage({ key, news }));
    }
  };
  port.start();
});
