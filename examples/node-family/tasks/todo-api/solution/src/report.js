const base = process.env.TODO_URL ?? `http://127.0.0.1:${process.env.PORT}`;
const answer = await fetch(`${base}/todos`, { headers: { authorization: `Bearer ${process.env.SERVICE_TOKEN}` } });
if (answer.status !== 200) {
  console.error(`the service answered ${answer.status}`);
  process.exit(1);
}
const people = new Map();
for (const todo of await answer.json()) {
  const counts = people.get(todo.who) ?? { open: 0, done: 0 };
  counts[todo.done ? "done" : "open"]++;
  people.set(todo.who, counts);
}
for (const who of [...people.keys()].sort()) {
  const { open, done } = people.get(who);
  console.log(`${who}: ${open} open, ${done} done`);
}
