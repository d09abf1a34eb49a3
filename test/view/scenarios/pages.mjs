// Pages that show what has ended: lists, the experiment, the cell, damaged and empty directories.
import { accessible, check, click, equal, firstExperiment, open, reads, texts, together } from "./common.mjs";

/** The list of experiments: claim, rates, cost, and a filter that is kept in the address. */
export async function experiments(page, args) {
  await open(page, args);
  await reads(page, args.claim);
  await reads(page, args.runs);
  check((await page.locator(".whisker").count()) >= 2, "every rate has its interval");
  await page.setViewportSize({ width: 390, height: 844 });
  await accessible(page, "the list on a phone");
  const cut = await page.locator("table.experiments :is(th, .num, .whisker)").evaluateAll((list) => list.filter((e) => e.getBoundingClientRect().right > innerWidth).map((e) => e.textContent));
  equal(cut, [], "cut on a phone");
  return page.locator("table.experiments tbody tr").count();
}

export async function filterExperiments(page, args) {
  await open(page, args);
  await firstExperiment(page);
  await page.keyboard.press("/");
  await page.keyboard.type(args.word);
  await page.waitForFunction((n) => document.querySelectorAll("table.experiments tbody tr").length === n, args.left);
  check(page.url().includes("q=" + args.word), "the filter is in the address: " + page.url());
  await page.reload();
  await page.waitForFunction((n) => document.querySelectorAll("table.experiments tbody tr").length === n, args.left);
}

/** The numbers of the decision, the rates and the tasks, as they can be read. */
export async function experiment(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.waitForSelector("table.grid tbody tr");
  await reads(page, args.word);
  await page.waitForSelector("table.grid tfoot .whisker circle");
  const rows = await page.locator("table.grid tbody tr").evaluateAll((list) =>
    list.map((tr) => ({
      task: tr.cells[0].innerText,
      marks: [...tr.querySelectorAll(".marks")].map((m) => [...m.querySelectorAll("a")].map((a) => a.getAttribute("aria-label").split(" · ")[0])),
      difference: tr.cells[3].innerText,
    })),
  );
  return {
    sentence: await page.locator("h1").innerText(),
    claim: await page.locator(".claim").innerText(),
    rates: await texts(page, ".decision .rate"),
    overall: await page.locator("table.grid tfoot").innerText(),
    rows,
  };
}

/** Sorting and filtering the grid change the address, and a reload keeps them. */
export async function gridOrder(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.waitForSelector("table.grid tbody tr");
  await click(page, page.getByRole("button", { name: "task" }));
  await page.waitForFunction(() => location.hash.includes("sort=-task"));
  const names = () => page.locator("table.grid tbody tr td:first-child").allInnerTexts();
  const down = await names();
  equal(down, [...down].sort().reverse(), "tasks from z to a");
  await page.getByLabel("Filter by outcome").selectOption("fail");
  await page.waitForFunction(() => location.hash.includes("state=fail"));
  const failing = await names();
  check(failing.length > 0 && failing.length < down.length, `some tasks fail: ${failing.length} of ${down.length}`);
  await page.reload();
  await page.waitForSelector("table.grid tbody tr");
  equal(await names(), failing, "the filter after a reload");
  // A cell and back: by the browser's button, by the path above the page, and over another tab.
  const ways = [() => page.goBack(), () => click(page, page.locator(".crumbs a").nth(1))];
  for (const back of ways) {
    await click(page, page.locator("table.grid .marks a").first());
    await page.waitForSelector(".outcome h1");
    await back();
    await page.waitForSelector("table.grid tbody tr");
    equal(await names(), failing, "the filter after a cell");
  }
  for (const tab of ["checks", "grid"]) await click(page, page.locator(".tabs a", { hasText: tab }).first());
  await page.waitForSelector("table.grid tbody tr");
  equal(await names(), failing, "the filter after another tab");
}

/** A cell: its evidence, diff, timeline, tokens and transcript; [ and ] go to its neighbours. */
export async function cell(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await page.evaluate((to) => (location.hash = to), `#/x/${id}/${args.task}/${args.arm}/0`);
  await page.waitForSelector(".outcome h1");
  await page.waitForSelector(".evidence .mark");
  await page.waitForSelector(".diff .line.added");
  await page.waitForSelector(".timeline .stop circle");
  const milestones = await page.locator(".timeline tr").evaluateAll((list) =>
    list.map((tr) => ({ at: Number(tr.querySelector("circle").getAttribute("cx")) - 4, label: tr.querySelector("svg").getAttribute("aria-label") })),
  );
  const inMs = (text) => text.split(" ").reduce((sum, part, i, all) => sum + ({ ms: 1, s: 1000, m: 60_000 }[all[i + 1]] ?? 0) * (Number(part) || 0), 0);
  for (const { at, label } of milestones) {
    const [, after, whole] = / after (.*) of (.*)$/.exec(label);
    const rounded = 100 / inMs(whole); // what is read has a tenth of a second at best
    check(Math.abs(at / 472 - inMs(after) / inMs(whole)) < 0.01 + rounded, `milestones are to scale: ${label} is drawn at ${at} of 472`);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const reach = await page.locator(".timeline").evaluate((table) => Math.max(...[...table.querySelectorAll("circle")].map((e) => e.getBoundingClientRect().right)) - table.getBoundingClientRect().right);
  check(reach <= 0, `milestones reach ${reach} pixels beyond a phone`);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.waitForSelector(".chart svg rect");
  await page.waitForSelector(".transcript .entry.assistant");
  await click(page, page.getByText("what the graders printed"));
  equal(await page.locator("h2").first().innerText().then((text) => text.split("  ")[0].startsWith("What the agent was asked")), true, "the first part of a cell");
  await click(page, page.locator("summary", { hasText: "System prompt" }));
  await page.waitForSelector(".printed pre");
  await click(page, page.locator("details h2", { hasText: "Model calls" }));
  await page.waitForSelector("details[open] th");
  await click(page, page.locator("button", { hasText: "show" }).and(page.locator("[aria-expanded]")).first());
  await page.waitForSelector(".bodies pre");
  check((await page.locator(".bodies pre").first().innerText()).includes('"messages"'), "a call shows its request");
  check((await page.locator(".waterfall .bar-call").count()) > 0 && (await page.locator(".waterfall .bar-tool").count()) > 0, "calls and tools in time");
  await accessible(page, "a cell with its calls");
  const text = await page.locator("main").innerText();
  const before = await page.evaluate(() => location.hash);
  // Three quick steps are three steps, although no cell between has been read.
  await page.evaluate(() => {
    window.visited = [];
    addEventListener("hashchange", () => window.visited.push(location.hash));
  });
  await together(page, "]", "]", "]");
  await page.waitForFunction(() => window.visited.length === 3, null, { timeout: 5000 });
  await page.waitForSelector(".outcome h1");
  await together(page, "[", "[", "[");
  await page.waitForFunction((old) => location.hash === old && window.visited.length === 6, before, { timeout: 5000 });
  return text;
}

/** Two traces side by side, reached from a cell. */
export async function sideBySide(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await page.evaluate((to) => (location.hash = to), `#/x/${id}/${args.task}/${args.arm}/0`);
  await click(page, page.getByRole("button", { name: "side by side with " + args.other }));
  await page.waitForSelector("table.aligned tbody tr");
  await page.keyboard.press("j");
  await page.waitForSelector("tr.chosen");
  return page.locator("main").innerText();
}

/** Labelling is blind: the page names neither the arms nor the judges, and every key labels one run. */
export async function labels(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await page.evaluate((to) => (location.hash = to), "#/versus/" + id);
  await click(page, page.getByRole("link", { name: "Label runs, blind" }));
  const evidence = page.locator(".evidence-text");
  const option = page.locator("select option").first();
  const seen = [];
  for (const key of ["p", "f", "s", "p"]) {
    await evidence.waitFor();
    const [before, count] = [await evidence.innerText(), await option.innerText()];
    const text = (await page.locator("main").innerText()).toLowerCase();
    for (const word of args.secrets) check(!text.includes(word), `the page says ${word}: ${text}`);
    seen.push(await page.locator("h1").innerText());
    await page.keyboard.press(key);
    if (key === "s") await page.waitForFunction((old) => (document.querySelector(".evidence-text")?.innerText ?? old) !== old, before);
    else await page.waitForFunction((old) => (document.querySelector("select option")?.innerText ?? old) !== old, count);
  }
  return option.innerText();
}

/** What a page says, for directories that are empty or damaged. */
export async function says(page, args) {
  await open(page, args, args.hash);
  if (args.experiment) await page.evaluate((to) => (location.hash = to), "#/x/" + (await firstExperiment(page, args.experiment)));
  for (const text of args.texts) await reads(page, text);
  await accessible(page, args.what ?? "the page");
}

/** Without token or cookie nothing is seen. */
export async function locked(page, args) {
  const response = await page.goto(new URL("/", args.url).href);
  equal(response.status(), 401, "a request without a cookie");
  check(!(await page.content()).includes("app.js"), "the page names no asset");
}

/** The keyboard alone: from the list to a failing cell's first error and back, with help on the way. */
export async function keyboard(page, args) {
  await open(page, args);
  await firstExperiment(page);
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await press("j", "Enter");
  await page.waitForSelector("table.grid tbody tr");
  await press("?");
  await page.waitForSelector("dialog[open]");
  await reads(page, "next task");
  await press("Escape");
  await page.waitForSelector("dialog:not([open])", { state: "attached" });
  await press("e");
  await page.waitForSelector("tr.chosen .mark.fail");
  await press("Enter");
  await page.waitForSelector(".outcome h1");
  await page.waitForSelector(".transcript .entry");
  await press("G");
  await page.waitForSelector(".entry.chosen");
  await together(page, "g", "g");
  await page.waitForFunction(() => location.hash.includes("at=0"));
  await press("/");
  check((await page.evaluate(() => document.activeElement.type)) === "search", "/ moves to the search");
  await page.goBack();
  await page.waitForSelector("table.grid");
  // Everything a mouse reaches, Tab reaches: links, buttons and fields.
  const reached = new Set();
  await page.evaluate(() => document.body.focus());
  for (let i = 0; i < 60; i++) {
    await press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.tagName + ":" + (document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText).slice(0, 20)));
  }
  check([...reached].some((r) => r.startsWith("BUTTON:task")) && [...reached].filter((r) => r.startsWith("A:")).length > 10, "Tab reaches: " + [...reached].join(", "));
}

/** A picture of a page for the documentation. */
export async function picture(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  const hash = args.hash.replace("ID", id);
  await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForSelector(args.wait);
  if (args.click) {
    await page.locator(args.click).first().click();
    await page.locator(args.then).nth(1).click();
    await page.mouse.move(0, 0);
  }
  await page.waitForLoadState("networkidle").catch(() => {});
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.screenshot({ path: args.path });
}

/** A long grid, scrolled from end to end: rows everywhere, the head always there, and no column moves. */
export async function scrollGrid(page, args) {
  await open(page, args);
  await open(page, args, "#/x/" + (await firstExperiment(page)));
  await page.waitForSelector(".grid .marks");
  await page.answered();
  const look = () => {
    const table = document.querySelector("table.grid");
    const [head, body] = [table.tHead, table.tBodies[0]].map((part) => part.getBoundingClientRect());
    const blank = [];
    for (let y = Math.max(head.bottom, body.top) + 5; y < Math.min(body.bottom, innerHeight) - 5; y += 40) {
      const row = document.elementFromPoint(table.getBoundingClientRect().left + 10, y)?.closest("tr");
      if (!row || row.classList.contains("spacer")) blank.push(Math.round(y));
    }
    return { top: Math.round(head.top), blank, columns: [...table.tHead.querySelectorAll("th")].map((th) => Math.round(th.getBoundingClientRect().left)) };
  };
  const first = await page.evaluate(look);
  const height = await page.evaluate("document.documentElement.scrollHeight");
  for (let y = 0; y < height; y += height / 97) {
    await page.evaluate((y) => scrollTo(0, y), y);
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    const now = await page.evaluate(look);
    equal(now.blank, [], `blank at ${y}`);
    equal(now.columns, first.columns, `the columns at ${y}`);
    check(now.top >= -1 || y > height - 1700, `the head is ${-now.top} pixels above the window at ${y}`);
  }
}

/** Two experiments are chosen in the list and compared; what was chosen is in the address. */
export async function compareTwo(page, args) {
  await open(page, args);
  await firstExperiment(page, args.names[0]);
  for (const name of args.names) await page.getByLabel("Compare " + name, { exact: true }).check();
  for (const [i, name] of args.names.entries()) await page.getByLabel("Arm of " + name, { exact: true }).selectOption(args.arms[i]);
  await accessible(page, "the list with a choice");
  await page.reload();
  for (const name of args.names) check(await page.getByLabel("Compare " + name, { exact: true }).isChecked(), name + " is still chosen after a reload");
  await click(page, page.locator(".compare a"));
  await page.waitForSelector("table.grid tfoot .whisker circle");
  await accessible(page, "a comparison");
  const head = { sentence: await page.locator("h1").innerText(), claim: await page.locator(".claim").innerText(), overall: await page.locator("table.grid tfoot").innerText() };
  await click(page, page.locator("table.grid .marks a").last());
  await page.waitForSelector(".transcript .entry");
  return { ...head, crumbs: await texts(page, ".crumbs li") };
}

/** Somebody writes a note, slowly; it is text, it marks its cell, tags are found, and it can be removed. */
export async function note(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  const cell = `#/x/${id}/even/after/0`;
  await page.evaluate((to) => (location.hash = to), cell);
  await page.waitForSelector(".transcript .entry");
  await page.getByLabel("Note", { exact: true }).pressSequentially(args.text, { delay: 20 });
  await page.getByLabel("Tags").pressSequentially("flaky, to-read", { delay: 20 });
  await click(page, page.getByRole("button", { name: "Save note" }));
  await page.waitForSelector("article.note");
  await accessible(page, "a cell with a note");
  const said = await page.locator("article.note").innerText();
  equal(await page.getByLabel("Note", { exact: true }).inputValue(), "", "the draft after saving");
  const waiting = page.waitForEvent("download");
  await click(page, page.getByText("share as one file"));
  const file = await waiting;
  await file.saveAs(args.path);
  await page.evaluate((to) => (location.hash = to), `#/x/${id}?q=flaky`);
  await page.waitForSelector(".marks a.noted");
  equal(await texts(page, "table.grid tbody td.task"), ["even"], "tasks with the tag");
  equal(await texts(page, "table.grid tbody .tag"), ["flaky", "to-read"], "the tags in the grid");
  await page.evaluate((to) => (location.hash = to), cell);
  await page.waitForSelector("article.note");
  if (args.kept) return { said, name: file.suggestedFilename() };
  await click(page, page.locator("article.note button"));
  await page.waitForSelector("article.note", { state: "detached" });
  return { said, name: file.suggestedFilename() };
}

/** A cell that was saved as a file: what was said about it is there, and no way to what is not. */
export async function cellFile(page, args) {
  await page.goto("file://" + args.path);
  await page.waitForSelector(".transcript .entry.assistant");
  await accessible(page, "a cell in a file");
  equal(await page.locator("header.bar nav a").count(), 1, "links to pages that are not in the file");
  equal(await page.locator("main form, main textarea").count(), 0, "forms that lead nowhere");
  return page.locator("main").innerText();
}

/** Columns are chosen, the choice is in the address, and the address is kept as a view. */
export async function columns(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await page.evaluate((to) => (location.hash = to), "#/x/" + id);
  await page.waitForSelector("table.grid tbody tr");
  const head = () => texts(page, "table.grid thead th");
  const before = await head();
  await click(page, page.locator(".menu summary"));
  await accessible(page, "the choice of columns");
  await page.locator(".menu").getByLabel("tokens").check();
  await page.locator(".menu").getByLabel("turns").uncheck();
  await page.waitForFunction(() => location.hash.includes("columns="));
  const chosen = await head();
  equal(chosen, [...before.filter((h) => h !== "turns"), "tokens"], "the columns");
  await click(page, page.getByRole("button", { name: "tokens" }));
  await page.waitForFunction(() => location.hash.includes("sort=tokens"));
  await page.reload();
  await page.waitForSelector("table.grid tbody tr");
  equal((await head()).map((h) => h.replace(/ [↑↓]/, "")), chosen.map((h) => h.replace(/ [↑↓]/, "")), "the columns after a reload");
  await click(page, page.getByRole("button", { name: "copy link" }));
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  equal(copied, page.url(), "the link");
  await click(page, page.getByRole("button", { name: "save view" }));
  await page.getByLabel("Name of the view").fill("by tokens");
  await click(page, page.getByRole("button", { name: "Save", exact: true }));
  const saved = page.locator(".views a", { hasText: "by tokens" });
  await saved.waitFor();
  await page.evaluate((to) => (location.hash = to), "#/x/" + id);
  await page.waitForFunction(() => !location.hash.includes("columns="));
  equal(await head(), before, "the columns without a choice");
  await click(page, saved);
  await page.waitForFunction(() => location.hash.includes("sort=tokens"));
  await accessible(page, "a saved view");
  await click(page, page.getByLabel("Remove the view by tokens"));
  await saved.waitFor({ state: "detached" });
}

/** A sentence of a skill's case is decided blind, by the way from the experiment: it fails. */
export async function labelSentence(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await page.evaluate((to) => (location.hash = to), "#/skill/" + id);
  await click(page, page.getByRole("link", { name: "Decide about sentences, blind" }));
  await page.locator(".evidence-text").waitFor();
  const text = (await page.locator("main").innerText()).toLowerCase();
  for (const word of args.secrets) check(!text.includes(word), `the page says ${word}: ${text}`);
  const option = page.locator("select option").first();
  const before = await option.innerText();
  await page.keyboard.press("f");
  await page.waitForFunction((old) => (document.querySelector("select option")?.innerText ?? old) !== old, before);
  return option.innerText();
}

/** The page of a skill: one case is opened and given feedback. */
export async function skill(page, args) {
  await open(page, args);
  const id = await firstExperiment(page);
  await page.evaluate((to) => (location.hash = to), "#/x/" + id);
  await click(page, page.getByRole("navigation", { name: "Views of this experiment" }).getByRole("link", { name: "skill", exact: true }));
  await click(page, page.locator("table.cases").getByRole("link", { name: args.case, exact: true }));
  await page.locator(".column .diff .line.cited").first().waitFor();
  await page.answered();
  await accessible(page, "the page of a skill");
  const found = {
    sentence: await page.locator("h1.sentence").innerText(),
    marks: await page.locator("table.cases td.nowrap a").evaluateAll((all) => all.map((a) => a.getAttribute("aria-label"))),
    columns: await texts(page, ".column"),
    cited: await texts(page, ".column .diff .line.cited"),
  };
  await page.getByRole("textbox", { name: "Feedback" }).fill(args.text);
  await click(page, page.getByRole("button", { name: "Save feedback" }));
  await reads(page, "kept in feedback.json");
  return found;
}
