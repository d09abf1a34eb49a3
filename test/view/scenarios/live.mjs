// Pages of what is still running.
import { accessible, check, equal, firstExperiment, open, reads } from "./common.mjs";

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
  for (const [label, text] of [["concurrency", "3"], ["budget $", "7"]]) {
    await page.getByLabel(label, { exact: true }).fill(text);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "change" }).press("Enter");
    await page.getByRole("button", { name: "change" }).waitFor({ state: "detached" });
  }
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

/** Twenty pages of one browser are live at the same time: all of them open, and all hear of a change. */
export async function manyTabs(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  const places = [`#/x/${id}`, `#/x/${id}/fix-add-00/pear/0`, "#/", `#/trace/${args.trace.replace("ID", id)}`];
  const tabs = [];
  for (let n = 0; n < 20; n++) {
    const tab = await page.context().newPage();
    tab.setDefaultTimeout(60_000);
    await tab.goto(args.url.replace(/\?.*/, "") + places[n % places.length]);
    await tab.waitForSelector(["h1.sentence", ".outcome h1", "table.experiments", ".entry"][n % places.length]);
    tabs.push(tab);
  }
  for (let n = 0; n < 20; n += 4) await tabs[n].waitForSelector(".live-line:has-text('7 of 10')");
  await fetch(args.change);
  for (let n = 0; n < 20; n += 4) await tabs[n].waitForSelector(".live-line:has-text('9 of 10')");
  for (let n = 3; n < 20; n += 4) await tabs[n].waitForSelector(".pill:has-text('1 new')");
  await Promise.all(tabs.map((tab) => tab.close()));
}

/** A page of a finished run, or of a finished trace, holds no connection. */
export async function noStream(page, args) {
  await page.addInitScript(() => {
    window.streams = 0;
    for (const name of ["EventSource", "SharedWorker"]) {
      const real = window[name];
      window[name] = class extends real {
        constructor(...given) {
          super(...given);
          window.streams++;
        }
      };
    }
  });
  await open(page, args);
  const id = await firstExperiment(page);
  for (const [place, part] of [[`#/x/${id}`, ".grid .marks"], [`#/x/${id}/fix-add-00/pear/0`, ".outcome h1"], [`#/trace/${args.trace.replace("ID", id)}`, ".entry"]]) {
    await page.goto("about:blank");
    await page.goto(args.url.replace(/\?.*/, "") + place);
    await page.waitForSelector(part);
    await page.answered();
    check((await page.evaluate("window.streams")) === 0, `${place} holds a stream`);
  }
}

/** What is typed is a draft, whatever arrives meanwhile; money is changed only by who has seen both amounts. */
export async function drafts(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  const atOnce = page.getByLabel("concurrency", { exact: true });
  const budget = page.getByLabel("budget $", { exact: true });
  const costs = (n) => page.waitForSelector(`.live-line:has-text("${n}")`);
  const line = await page.locator(".live-line").innerText();
  check(line.includes("paused") && !line.includes("left"), "while nothing runs, no time is left: " + line);
  await atOnce.selectText();
  await page.keyboard.press("1");
  await fetch(args.change); // the status changes between two keys
  await costs("$2.75");
  await page.keyboard.press("2");
  equal(await atOnce.inputValue(), "12", "what was typed");
  await page.keyboard.press("Escape");
  equal(await atOnce.inputValue(), "4", "after Escape");
  await budget.fill("");
  await page.keyboard.press("Enter");
  await reads(page, "the budget is an amount of dollars");
  await budget.blur();
  await page.getByRole("button", { name: "keep" }).click();
  await budget.fill("12");
  await page.keyboard.press("Enter");
  await reads(page, "$5.00 → $12?");
  await page.getByRole("button", { name: "keep" }).click();
  equal(await page.evaluate("document.activeElement.value"), "5", "the field in which one goes on");
  await budget.fill("1");
  await page.keyboard.press("Enter");
  await reads(page, "$5.00 → $1.00? $2.75 are spent: no further cell starts");
  await page.getByRole("button", { name: "keep" }).click();
  await page.getByRole("button", { name: "no limit" }).click();
  await reads(page, "$5.00 → no limit?");
  await accessible(page, "a change that is asked");
  await page.keyboard.press("Escape");
  equal(await budget.inputValue(), "5", "the budget");
  await atOnce.fill("500");
  await page.keyboard.press("Enter");
  await reads(page, "4 → 500? only ");
  await page.keyboard.press("Escape");
  await atOnce.fill("12");
  await page.keyboard.press("Enter");
  await reads(page, "4 → 12?");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".controls .said")?.innerText === "done");
}
