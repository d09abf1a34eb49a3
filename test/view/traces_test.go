package view

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// conversation writes events of a stream to a trace.
type conversation struct {
	strings.Builder
	calls int
}

func (c *conversation) line(event map[string]any) {
	content, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	c.Write(content)
	c.WriteByte('\n')
}

func (c *conversation) says(blocks ...map[string]any) {
	c.line(map[string]any{"type": "assistant", "message": map[string]any{
		"id": fmt.Sprintf("msg_%d", c.Len()), "role": "assistant", "content": blocks,
		"usage": map[string]any{"input_tokens": 10, "output_tokens": 2},
	}})
}

func (c *conversation) text(text string) { c.says(map[string]any{"type": "text", "text": text}) }

// call is a tool call and its result: two entries.
func (c *conversation) call(tool string, input map[string]any, result any, failed bool) {
	c.calls++
	id := fmt.Sprintf("toolu_%d", c.calls)
	c.says(map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input})
	c.line(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed},
	}}})
}

func begin() *conversation {
	c := &conversation{}
	c.line(map[string]any{"type": "system", "subtype": "init", "session_id": "s", "model": "m"})
	return c
}

func (c *conversation) save(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	if err := os.WriteFile(path, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrace(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	c := begin() // entry 0
	for i := range 60 {
		c.text(fmt.Sprintf("step %d of the plan", i)) // entries 1, 4, 7, …
		c.call("Bash", map[string]any{"command": fmt.Sprintf("sh step%d.sh", i)}, fmt.Sprintf("output %d", i), i == 40)
	}
	c.call("Read", map[string]any{"file_path": "notes/needle.md"}, "a needle in the notes", false)
	url := serve(t, c.save(t))
	b.run(t, "search", map[string]any{"url": url, "word": "needle", "hits": "2 hits", "error": 123})
	const one = "1 of 183 entries"
	b.run(t, "filters", map[string]any{"url": url, "tool": "Read", "shown": one, "errors": one})
	b.run(t, "permalink", map[string]any{"url": url, "at": 100, "text": "step 33 of the plan"})
	b.run(t, "earlyLink", map[string]any{"url": url, "at": 151, "text": "step 50 of the plan"})
}

// TestReadable: what a model writes is Markdown, unless its source is wanted; changes of files are
// diffs; a closed call has its exit code and the first line of its error; terminals have colours.
// Nothing of it is more than text.
func TestReadable(t *testing.T) {
	t.Parallel()
	c := begin()
	c.text("# The plan\n\n1. **Read** `calc.go`\n2. mend it\n   - with care\n\n> as asked\n\n" +
		"| file | lines |\n|---|--:|\n| calc.go | 4 |\n\n```go\nfunc Add() {}\n```\n\n" +
		"[the docs](https://evil.example/x) ![](https://evil.example/p.png)\n\n<script>alert(1)</script><img src=x onerror=alert(2)> [x](javascript:alert(3))")
	c.call("Edit", map[string]any{
		"file_path":  "calc.go",
		"old_string": "func Add() {\n\treturn 1\n}\n",
		"new_string": "func Add() {\n\treturn 2\n}\n",
	}, "done", false)
	c.call("Write", map[string]any{"file_path": "notes.md", "content": "first\nsecond\n"}, "done", false)
	c.call("Bash", map[string]any{"command": "go test ./..."}, "Exit code 2\n\nsyntax error near here\nmore", true)
	c.call("Bash", map[string]any{"command": "ls --color"},
		"\x1b[1;32mgreen\x1b[0m plain \x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J", false)
	chromium(t).run(t, "readable", map[string]any{"url": serve(t, c.save(t))})
}

// An image that is none, and one that may hold a script, are not shown as images, neither on the
// page nor in a file.
func TestImages(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	image := func(kind, data string) map[string]any {
		return map[string]any{
			"type": "image", "source": map[string]any{"type": "base64", "media_type": kind, "data": data},
		}
	}
	c := begin()
	c.says(image("image/png", pixel))
	c.call("Read", map[string]any{"file_path": "a.png"}, []any{
		image("image/png", pixel), image("image/svg+xml", "PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+"),
		map[string]any{"type": "text", "text": "beside the image"},
	}, false)
	path := c.save(t)
	b.run(t, "images", map[string]any{"url": serve(t, path), "shown": 2, "text": "beside the image"})
	file := exported(t, "trace", "export", path, "--format", "html")
	b.run(t, "images", map[string]any{"path": file, "shown": 2, "text": "beside the image"})
}

// hostileDiff changes files with names that mean something to programs.
const hostileDiff = `diff --git a/x.constructor b/x.constructor
--- a/x.constructor
+++ b/x.constructor
@@ -0,0 +1,2 @@
+<script>window.hit++</script>
+<img src=x onerror="window.hit++">
diff --git a/__proto__ b/__proto__
--- a/__proto__
+++ b/__proto__
@@ -0,0 +1 @@
+[31mred
`

// A diff is text, whatever its files are called.
func TestHostileDiff(t *testing.T) {
	t.Parallel()
	g := visit(t)
	pages := glance(t, map[string]any{"url": g.address},
		spot{"hostile diff", "#/x/" + g.id(t, "errors") + "/fix-add-00/pear/0", ".diff .line.added"})
	pages["hostile diff"].says(t, "x.constructor", "__proto__", `<script>window.hit++</script>`,
		`<img src=x onerror="window.hit++">`)
}

// What an agent writes is text, whatever it looks like.
func TestHostileTrace(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	c := begin()
	c.text(`<script>window.hit++</script><img src=x onerror="window.hit++"><svg onload="window.hit++">`)
	c.text("[click](javascript:window.hit++) <a href=\"javascript:window.hit++\">here</a> https://example.com/")
	c.text("\x1b[31mred\x1b[0m \x1b]8;;https://example.com\x07link\x1b]8;;\x07 \x1b]0;title\x07")
	c.text("user\u202egnp.exe \u2066isolated\u2069 zero\u200bwidth")
	input := map[string]any{"<img src=x onerror=window.hit++>": "</pre><script>window.hit++</script>"}
	frame := "</pre><iframe src=\"javascript:parent.hit++\"></iframe>\x00"
	c.call(`<b onmouseover="window.hit++">Bash</b>`, input, frame, true)
	c.says(map[string]any{"type": "thinking", "thinking": "<style>*{display:none}</style>"})
	c.line(map[string]any{"type": "system", "subtype": `"><script>window.hit++</script>`, "data": "{{{{"})
	c.WriteString(`{"type":"assistant","message":{"id":"bytes","role":"assistant","content":[` +
		"{\"type\":\"text\",\"text\":\"bytes \xff\xfe and \\ud800 alone\"}]}}\n")
	c.call("__proto__", map[string]any{"constructor": "toString"}, "a tool of every object", false)
	b.run(t, "hostile", map[string]any{"url": serve(t, c.save(t)), "entries": 12, "texts": []map[string]any{
		{"at": 1, "text": `<script>window.hit++</script>`},
		{"at": 3, "text": `\x1b[31mred`},
		{"at": 3, "text": `\x1b]8;;https://example.com\x07link`},
		{"at": 4, "text": `user\u202egnp.exe \u2066isolated\u2069 zero\u200bwidth`},
		{"at": 9, "text": "bytes \ufffd"},
		{"at": 10, "text": "__proto__"},
	}})
}

func TestLongLine(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	c := begin()
	c.text(strings.Repeat("all work and no play ", 5<<20/21))
	c.text("after the long line")
	url := serve(t, c.save(t))
	b.run(t, "longLine", map[string]any{"url": url, "at": 1, "size": "5.0 MB"})
	b.run(t, "permalink", map[string]any{"url": url, "at": 2, "text": "after the long line"})
}

// manyTurns is enough for a long trace; make bench-view has 100,000 turns, and a gigabyte.
var manyTurns = testenv.Size(20_000, 5_000)

func TestLongTrace(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	manyTurns := manyTurns
	if os.Getenv("FIT_BENCH") != "" {
		manyTurns = 100_000
	}
	c := begin()
	for i := range manyTurns {
		c.text(fmt.Sprintf("turn %d", i))
	}
	last := fmt.Sprintf("turn %d", manyTurns-1)
	b.run(t, "longTrace", map[string]any{"url": serve(t, c.save(t)), "entries": manyTurns + 1, "last": last})
}

func TestTeam(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	url := serve(t, "../../examples/traces/team.ndjson")
	b.run(t, "team", map[string]any{"url": url, "messages": 1, "lane": "worker"})
}
