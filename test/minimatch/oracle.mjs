// Reads a JSON array of [pattern, path] pairs on standard input and writes a JSON array of minimatch's answers (dot:true).
// An answer is true, false, or null where minimatch throws.
import { minimatch } from "minimatch";

let input = "";
for await (const chunk of process.stdin.setEncoding("utf8")) input += chunk;

const answers = JSON.parse(input).map(([pattern, path]) => {
  try {
    return minimatch(path, pattern, { dot: true });
  } catch {
    return null;
  }
});
process.stdout.write(JSON.stringify(answers));
