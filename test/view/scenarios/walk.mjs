// Every page as a user meets it: with a screen reader's eyes, with the keyboard alone, dark, on a phone, on paper,
// after a reload. What can be read there is returned, to be compared with what the commands print.
import { accessible, check, contrast, equal, open, reachable } from "./common.mjs";

const phone = { width: 390, height: 800 };
const desk = { width: 1280, height: 800 };
const paper = { width: 688, height: 974 }; // A4 without its margins

/** How every page is met. */
export const steps = [accessible, narrow, dark, printed, keys];

/** Walks through places; each has an address and what to wait for. */
export async function walk(page, args) {
  if (args.path) await page.goto("file://" + args.path);
  else await open(page, args);
  const seen = {};
  for (const place of args.places) {
    if (place.hash) await page.evaluate((to) => (location.hash = to), place.hash);
    await settled(page, place);
    seen[place.name] = await read(page);
    for (const step of steps) await step(page, place.name);
  }
  // Last, because a new document needs axe again. What the page drew before is of no use to it.
  for (const place of args.places) {
    if (place.hash) await page.evaluate((to) => history.replaceState(null, "", to), place.hash);
    await page.reload();
    await settled(page, place);
    equal((await read(page)).tables.length, seen[place.name].tables.length, place.name + " after a reload has as many tables");
  }
  return seen;
}

/** Waits until a place is there, with everything it asks for, and opens what is folded. */
export async function settled(page, place) {
  await page.waitForSelector(place.wait);
  await page.answered();
  const folds = page.locator("main details:not([open]) > summary:not(.entry *)");
  for (let left = 20; left > 0 && (await folds.count()) > 0; left--) await folds.first().click();
  await page.answered();
  await page.waitForFunction(() => !/Reading…|Computing…/.test(document.body.innerText));
}

/** The words of a page, and its tables row by row. Several spaces and thin ones are one. */
async function read(page) {
  return page.evaluate(() => {
    const plain = (text) => text.replace(/\s+/g, " ").trim();
    const rows = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => plain(cell.innerText)));
    return {
      bar: plain(document.querySelector("header.bar").innerText),
      text: plain(document.querySelector("main").innerText),
      tables: [...document.querySelectorAll("main table")].map(rows),
      hovers: [...document.querySelectorAll("main [title], main [aria-label], main svg title")].map((e) =>
        plain(e.tagName === "title" ? e.textContent : (e.getAttribute("title") ?? e.getAttribute("aria-label"))),
      ),
      cited: [...document.querySelectorAll(".diff .line.cited code")].map((code) => plain(code.innerText)),
    };
  });
}

async function narrow(page, what) {
  await page.setViewportSize(phone);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await page.answered(); // what is too wide now knows it
  await reachable(page, what + " on a phone");
  await page.setViewportSize(desk);
  check(wide <= 1, `${what} is ${wide} pixels wider than a phone`);
}

async function dark(page, what) {
  await page.emulateMedia({ colorScheme: "dark" });
  await contrast(page, what + " in the dark");
  await page.emulateMedia({ colorScheme: "light" });
}

/** Nothing is cut at the edge of the paper, and what can only be clicked is not printed. */
async function printed(page, what) {
  await page.setViewportSize(paper);
  await page.emulateMedia({ media: "print" });
  const found = await page.evaluate(() => ({
    cut: [...document.querySelectorAll("main table, main svg")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80)),
    buttons: [...document.querySelectorAll(".no-print")].filter((e) => e.checkVisibility()).length,
  }));
  await page.emulateMedia({ media: "screen" });
  await page.setViewportSize(desk);
  equal(found, { cut: [], buttons: 0 }, what + " on paper");
}

/** Tab goes through everything in the order of the page and shows where it is; nothing holds it; ? and Escape open and close the help. */
async function keys(page, what) {
  const most = 16; // the whole frame, and the first things of the page
  const wanted = await page.evaluate(() => {
    document.activeElement?.blur();
    scrollTo(0, 0);
    const all = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")];
    return all.filter((e) => !e.disabled && e.tabIndex >= 0 && e.checkVisibility()).length;
  });
  await page.evaluate(() => {
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    window.walked = [];
    window.trouble = "";
    const look = () => {
      const [e, last] = [document.activeElement, window.walked.at(-1)];
      if (e === document.body) return "the focus is lost after " + window.walked.length;
      const name = e.tagName + " " + (e.getAttribute("aria-label") ?? e.innerText).slice(0, 40);
      if (window.walked.includes(e)) return name + " has the focus again";
      window.walked.push(e);
      if (last && !(last.compareDocumentPosition(e) & (Node.DOCUMENT_POSITION_FOLLOWING | Node.DOCUMENT_POSITION_CONTAINED_BY))) return name + " comes out of order";
      const style = getComputedStyle(e);
      if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) return name + " does not show its focus";
      const box = e.getBoundingClientRect();
      if (box.bottom < 0 || box.top > innerHeight) return name + " has the focus out of sight";
      return "";
    };
    window.onkeyup = () => (window.trouble ||= look()); // the focus moves when the key goes down
  });
  const tabs = Math.min(wanted, most);
  for (let i = 0; i < tabs; i++) await page.keyboard.press("Tab");
  const [trouble, walked] = await page.evaluate(() => {
    window.onkeyup = null;
    return [window.trouble, window.walked.length];
  });
  check(!trouble, `Tab on ${what}: ${trouble}`);
  equal(walked, tabs, `Tab on ${what} reaches`);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog:not([open])", { state: "attached" });
}

/** What places say, on a page that is accessible and fits a phone. */
export async function meet(page, args) {
  return glance(page, { ...args, steps: [accessible, narrow] });
}

/** What places say, and nothing else. */
export async function glance(page, args) {
  await open(page, args);
  const seen = {};
  for (const place of args.places) {
    await page.evaluate((to) => (location.hash = to), place.hash);
    await settled(page, place);
    seen[place.name] = await read(page);
    for (const step of args.steps ?? []) await step(page, place.name);
  }
  return seen;
}
