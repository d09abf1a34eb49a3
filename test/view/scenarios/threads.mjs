// Threads of a bridge: two people in two browsers, and agents that answer.
import { accessible, check, click, equal, open, reachable, reads, texts } from "./common.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });

/** Opens a thread, and waits until its page is there. */
async function begin(page, text) {
  await page.evaluate(() => (location.hash = "#/"));
  await page.getByLabel("Open a thread").first().fill(text);
  await click(page, button(page, "Open a thread"));
  await page.waitForSelector(".post.person");
}

/** Waits until the thread is in a state. */
async function state(page, text) {
  await page.waitForFunction((wanted) => document.querySelector("main [role=status]")?.innerText.startsWith(wanted), text);
}

async function phone(page, what) {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 1, `${what} is ${wide} pixels wider than a phone`);
  await reachable(page, what + " on a phone");
  await page.setViewportSize(size);
}

/** What a post reads, without its line about who wrote it when. */
const bodies = (page, role) => texts(page, `.post.${role} .written`);

export async function thread(page, args) {
  await open(page, args);
  await reads(page, "There are no threads yet.");
  await begin(page, "Which licence?");
  const place = new URL(page.url()).hash;

  // replies arrive, markup and escapes are text
  await state(page, "in recess, until there is 1 post more");
  equal((await bodies(page, "agent")).sort(), ["<script>alert(1)</script> I am for MIT.\\x1b[31m", "I am for BSD."], "the replies");
  equal(await bodies(page, "end"), ["People must choose."], "the end of the run");
  await page.waitForFunction(() => document.querySelectorAll(".at-work tbody tr").length === 3);
  check((await page.locator(".at-work").innerText()).includes("builtin"), "the agents of the members");
  check(/\$\d.* so far, 1 run/.test(await page.locator("main").innerText()), "what it costs");
  await accessible(page, "a thread");
  await phone(page, "a thread");

  // somebody else, in another browser, sees the same, and decides
  const context = await page.context().browser().newContext({ reducedMotion: "reduce" });
  context.setDefaultTimeout(600_000);
  try {
    const other = await context.newPage();
    const problems = [];
    other.on("console", (m) => m.type() === "error" && problems.push(m.text()));
    other.on("dialog", (d) => problems.push(d.message()) && void d.dismiss());
    other.answered = async () => {};
    await open(other, { url: args.other });
    await other.getByRole("link", { name: "Which licence?" }).click();
    await other.waitForSelector(".post.end");
    for (const role of ["person", "agent", "end"]) equal(await bodies(other, role), await bodies(page, role), "the same in both browsers");
    await other.getByLabel("Post", { exact: true }).first().fill("Take MIT.");
    await button(other, "Post").click();
    for (const one of [page, other]) {
      await state(one, "adjourned");
      await reads(one, "MIT it is, Bea.");
      await reads(one, "We take MIT.");
      equal(await bodies(one, "person"), ["Which licence?", "Take MIT."], "what people said");
    }
    check((await other.locator(".post.person").last().innerText()).startsWith("Bea"), "who decided");
    equal(problems, [], "what the other browser reported");
  } finally {
    await context.close();
  }
  equal(await page.getByRole("button", { name: "adjourn" }).count(), 0, "buttons of a thread that is adjourned");

  // the trace of a member, and back
  await click(page, page.locator(".post.agent", { hasText: "I am for BSD." }).getByRole("link", { name: "trace" }));
  await reads(page, "I am for BSD.");
  await click(page, page.getByRole("link", { name: "thread", exact: true }));
  await page.waitForSelector(".post.end");
  equal(new URL(page.url()).hash, place, "the way back");

  // recess, resume and adjourn, while an agent works
  await begin(page, "Take your time.");
  await state(page, "● live");
  await reads(page, "lead works");
  await click(page, button(page, "recess"));
  await state(page, "in recess: a person resumes it");
  await reads(page, "Eve suspended the discussion.");
  await click(page, button(page, "resume"));
  await state(page, "● live");
  await fetch(args.release);
  await state(page, "in recess, until there is 1 post more");
  await reads(page, "I am for BSD.");
  await click(page, button(page, "adjourn"));
  await state(page, "adjourned");
  await reads(page, "Eve adjourned the discussion.");

  // a megabyte of hostile text, and a stop
  await begin(page, args.hostile);
  await click(page, button(page, "show all 1.0 MB"));
  const body = await page.locator(".post.person .written").evaluate((e) => e.textContent);
  await state(page, "● live");
  await click(page, button(page, "stop"));
  await state(page, "failed");
  await page.evaluate(() => (location.hash = "#/"));
  await reads(page, "Take your time.");
  await accessible(page, "the threads");
  await phone(page, "the threads");

  const kept = await page.evaluate(() => document.documentElement.outerHTML + location.href + JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie);
  check(!kept.includes(new URL(args.url).searchParams.get("token")), "a page has the token");
  return { body };
}

/** A thread of the list that waits for a person, who writes what decides. */
export async function discussed(page, args) {
  await open(page, args);
  await page.getByRole("link", { name: args.question }).click();
  await state(page, "in recess, until there is 1 post more");
  await page.getByLabel("Post", { exact: true }).first().fill(args.post);
  await click(page, button(page, "Post"));
  await state(page, "adjourned");
  await reads(page, "Outcome: ");
  return texts(page, ".post .written");
}
