// Pages of what is still running.
import { check, firstExperiment, open, reads } from "./common.mjs";

/** The page of a running experiment changes by itself; returns the numbers it went through. */
export async function liveExperiment(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.waitForSelector(".live-line");
  await page.waitForSelector(".running-cells tbody tr");
  const done = () => document.querySelectorAll(".grid .mark.pass, .grid .mark.fail").length;
  const first = await page.evaluate(done);
  await page.waitForFunction((n) => document.querySelectorAll(".grid .mark.pass, .grid .mark.fail").length > n, first);
  check(await page.locator(".live-line").innerText(), "a line about the progress");
}

/** Pause, resume, cancel, and the bounds, with the buttons of the page. */
export async function control(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.getByRole("button", { name: "pause" }).click();
  await page.waitForSelector("button:text-is('resume')");
  await reads(page, "paused");
  await page.getByLabel("at once").fill("1");
  await page.keyboard.press("Enter");
  await page.getByLabel("budget $").fill("7");
  await page.keyboard.press("Enter");
  const cancel = page.getByRole("button", { name: /^cancel/ }).first();
  const name = await cancel.getAttribute("aria-label");
  await cancel.click();
  await page.getByRole("button", { name: "resume" }).click();
  await page.waitForSelector("button:text-is('pause')");
  return name;
}

/** An experiment that ends while it is looked at. */
export async function ends(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.waitForSelector(".live-line");
  await page.waitForSelector(".live-line", { state: "detached", timeout: 60_000 });
  await reads(page, args.word);
}
