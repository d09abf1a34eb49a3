// Figures: first paint, jumps, memory.
import { check, firstExperiment, open } from "./common.mjs";

/** How long after opening a place an element is painted, in milliseconds. */
async function painted(page, url, selector) {
  const start = Date.now();
  await page.goto(url);
  await page.reload({ waitUntil: "commit" });
  const again = Date.now();
  await page.waitForSelector(selector);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { first: Date.now() - start, again: Date.now() - again };
}

export async function benchTrace(page, args) {
  await open(page, args);
  const link = page.locator("a[href*='#/trace/']").first();
  const hash = await link.getAttribute("href");
  await page.goto("about:blank");
  const times = await painted(page, new URL("/" + hash, args.url).href, ".entry .said");
  const start = Date.now();
  await page.keyboard.press("G");
  await page.waitForFunction((last) => document.querySelector(".entry.chosen .who a")?.innerText === last, String(args.entries - 1), { polling: "raf" });
  const jump = Date.now() - start;
  for (let i = 1; i <= 20; i++) {
    await page.evaluate((at) => (location.hash = location.hash.replace(/at=\d+/, "at=" + at)), Math.floor((args.entries * i) / 21));
    await page.waitForSelector(".entry.chosen .said");
  }
  const size = await heap(page);
  check(size > 0, "the heap can be measured");
  return { ms: times.again, jump, heap: size };
}

/** The grid of a large experiment: how soon its rows are painted, and how many of them are. */
export async function benchGrid(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await page.goto("about:blank");
  const times = await painted(page, new URL("/#/x/" + id, args.url).href, "table.grid tbody tr .marks a");
  await page.keyboard.press("G");
  await page.waitForSelector("tr.chosen");
  const rows = await page.locator("table.grid tbody tr").count();
  check(rows < args.tasks, `${rows} rows are drawn of ${args.tasks}`);
  return { ms: times.again, rows, heap: await heap(page) };
}

async function heap(page) {
  return page.evaluate(() => {
    window.gc?.();
    return performance.memory.usedJSHeapSize;
  });
}
