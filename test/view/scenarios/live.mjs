// Pages of what is still running.
import { accessible, check, firstExperiment, open, reads } from "./common.mjs";

/** The page of a running experiment changes by itself once the model answers. */
export async function liveExperiment(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.waitForSelector(".live-line");
  await page.waitForSelector(".running-cells tbody tr");
  const done = () => document.querySelectorAll(".grid .mark.pass, .grid .mark.fail").length;
  const first = await page.evaluate(done);
  check(await page.locator(".live-line").innerText(), "a line about the progress");
  await fetch(args.answer);
  await page.waitForFunction((n) => document.querySelectorAll(".grid .mark.pass, .grid .mark.fail").length > n, first);
}

/** Pause, resume, cancel, and the bounds, with the buttons of the page. */
export async function control(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.getByRole("button", { name: "pause" }).click();
  await page.waitForSelector("button:text-is('resume')");
  await reads(page, "paused");
  await page.getByLabel("concurrency").fill("1");
  await page.keyboard.press("Enter");
  await page.getByLabel("budget $").fill("7");
  await page.keyboard.press("Enter");
  await page.locator(".grid .marks a:has(.mark.waiting)").last().click();
  await page.waitForSelector(".outcome h1");
  const cancel = page.getByRole("button", { name: /^cancel/ });
  const name = await cancel.getAttribute("aria-label");
  await cancel.click();
  await page.waitForFunction(() => document.querySelector(".controls [role=status]")?.innerText);
  const said = await page.locator(".controls [role=status]").innerText();
  await page.goBack();
  await page.getByRole("button", { name: "resume" }).click();
  await page.waitForSelector("button:text-is('pause')");
  return [name, said];
}

/** A running cell is cancelled, and put back into the queue from its own page. */
export async function cancelRunning(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await open(page, args, "#/x/" + id);
  const row = page.locator(".running-cells tbody tr").first();
  await row.waitFor();
  await accessible(page, "a running experiment");
  const name = (await row.getByRole("button").getAttribute("aria-label")).replace("cancel ", "");
  await row.getByRole("button").click();
  await reads(page, "is stopped");
  // The one after it takes its place before it is put back, so that it is next and not running.
  await page.waitForFunction((old) => {
    const buttons = [...document.querySelectorAll(".running-cells tbody tr button")];
    return buttons.length === 1 && buttons[0].getAttribute("aria-label") !== "cancel " + old;
  }, name);
  await page.evaluate((to) => (location.hash = to), await row.locator("a").evaluate((a, [id, name]) => {
    const [task, arm, run] = name.split(", ");
    return `#/x/${id}/${task}/${arm}/${run.replace("run ", "")}`;
  }, [id, name]));
  const requeue = page.getByRole("button", { name: "requeue " + name });
  await requeue.click();
  await reads(page, "is next in the queue");
  await page.getByRole("button", { name: "cancel " + name }).waitFor();
  return name;
}
