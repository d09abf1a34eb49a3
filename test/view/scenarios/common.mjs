// What every scenario uses: opening pages, waiting for words, and axe.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export function check(holds, message) {
  if (!holds) throw new Error(message);
}

export function equal(got, want, what) {
  check(JSON.stringify(got) === JSON.stringify(want), `${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

/** Opens the printed address, which exchanges the token for a cookie, and then a place. */
export async function open(page, args, hash = "") {
  await page.goto(args.url);
  if (hash) await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForSelector("main");
}

/** Waits until some text can be read on the page. */
export async function reads(page, text) {
  await page.waitForFunction((wanted) => document.body.innerText.includes(wanted), text);
}

/** Clicks when nothing moves any more: what comes between pressing and releasing the button must not shift the target. */
export async function click(page, target) {
  await target.waitFor();
  await page.answered();
  await target.click();
}

/** Presses keys that belong together: the second is on its way before the first has been answered. */
export async function together(page, ...keys) {
  await Promise.all(keys.map((key) => page.keyboard.press(key)));
}

export async function texts(page, selector) {
  return page.locator(selector).allInnerTexts();
}

/** Serious findings of axe on the page as it is. The policy of the page refuses inline scripts, so axe is evaluated. */
export async function accessible(page, what) {
  await axe(page, what, {});
}

/** The one rule of axe that depends on colours. */
export async function contrast(page, what) {
  await axe(page, what, { runOnly: ["color-contrast"] });
}

/** The one rule of axe that depends on the width: what scrolls is within reach of the keyboard. */
export async function reachable(page, what) {
  await axe(page, what, { runOnly: ["scrollable-region-focusable"] });
}

async function axe(page, what, options) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axeSource);
  const found = await page.evaluate(async (options) => {
    const rules = { region: { enabled: false }, "target-size": { enabled: true } }; // the first takes a tenth of the time
    const result = await window.axe.run(document, { resultTypes: ["violations"], preload: false, iframes: false, rules, ...options });
    return result.violations
      .filter((v) => v.impact === "serious" || v.impact === "critical" || v.id === "heading-order")
      .map((v) => `${v.id}: ${v.help} (${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")})`);
  }, options);
  check(found.length === 0, `axe on ${what}: ${found.join("\n")}`);
}

/** The id of the first experiment on the list, and its name. */
export async function firstExperiment(page, name) {
  const link = name ? page.locator("table.experiments a", { hasText: name }).first() : page.locator("table.experiments a").first();
  await link.waitFor();
  return (await link.getAttribute("href")).split("/").pop();
}
