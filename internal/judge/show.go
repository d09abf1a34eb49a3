package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// The bounds of what is shown, in bytes. A token has about four of them.
const (
	maxPatch  = 120 << 10
	maxLine   = 2 << 10
	maxVerify = 8 << 10
	maxPrompt = 64 << 10
	maxTrace  = 240 << 10
)

// shapes takes secrets of well-known shapes out of the evidence. It knows no environment: the same
// directory must give the same requests everywhere.
var shapes = sync.OnceValue(func() *redact.Redactor { return redact.New(redact.Config{}) })

// view makes the sections of one subject.
type view struct {
	subject *Subject
	hide    *hider
	parts   map[string]*section // those made already
}

func newView(s *Subject) *view {
	return &view{subject: s, hide: newHider(s.names()), parts: map[string]*section{}}
}

// part makes a section once.
func (v *view) part(make func(prefix string) *section, name, prefix string) *section {
	if v.parts[prefix+name] == nil {
		v.parts[prefix+name] = make(prefix)
	}
	return v.parts[prefix+name]
}

// clean removes secrets and names from a text of several lines, and anything that could be taken
// for the end of a line.
func (v *view) clean(text string) string {
	return v.hide.text(shapes().String(strings.Map(plainBreaks, text)))
}

func plainBreaks(r rune) rune {
	switch r {
	case '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
		return ' '
	}
	return r
}

// builder writes a section.
type builder struct {
	strings.Builder
	section section
}

func newBuilder(title string) *builder {
	b := &builder{section: section{
		added:   map[string][]numbered{},
		removed: map[string][]numbered{},
		other:   map[string][]string{},
	}}
	b.WriteString("# " + title + "\n")
	return b
}

// cite writes lines under an address, so that each can be cited and none can be taken for a
// heading.
func (b *builder) cite(address, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		b.WriteString(address + " | " + line + "\n")
		b.section.other[address] = append(b.section.other[address], collapse(line))
	}
}

func (b *builder) note(format string, args ...any) { fmt.Fprintf(b, "("+format+")\n", args...) }

func (b *builder) done() *section {
	b.section.text = b.String()
	b.section.sum = sha256.Sum256([]byte(b.section.text))
	for _, files := range []map[string][]numbered{b.section.added, b.section.removed} {
		for _, lines := range files { // the hunks of a forged patch may stand in any order
			slices.SortStableFunc(lines, func(x, y numbered) int { return x.number - y.number })
		}
	}
	return &b.section
}

// task shows the prompt and the requirements. The prompt can be cited as req:task, so that
// omissions can be cited even if a task lists no requirements.
func (v *view) task(string) *section {
	b := newBuilder("Task")
	b.cite("req:task", display.CutBytes(v.clean(v.subject.Task.Prompt), maxPrompt))
	for _, r := range v.subject.Task.Requirements {
		b.cite("req:"+r.ID, oneLine(display.CutBytes(v.clean(r.Text), maxLine)))
	}
	return b.done()
}

// sharedTask returns the task of two runs. It is shown once; its requirements can be cited of
// either.
func (v *view) sharedTask(string) *section {
	part := v.task("")
	for address, lines := range maps.Clone(part.other) {
		part.other["X/"+address], part.other["Y/"+address] = lines, lines
	}
	return part
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// patch shows every changed line with its address, and the lines around them without one.
func (v *view) patch(prefix string) *section {
	b := newBuilder(prefix + "Changes")
	parsed := evidence.ParseDiff(v.subject.Patch)
	if len(parsed.Files) == 0 {
		b.note("nothing was changed")
	}
	left, leftovers := 0, 0
	for i := range parsed.Files {
		file := &parsed.Files[i]
		if tree.Leftover(file.Path()) != "" {
			leftovers++
			continue
		}
		name := func(name string) string { return prefix + oneLine(display.CutBytes(v.clean(name), maxLine)) }
		path := name(file.Path())
		if file.Status == patch.Renamed {
			b.note("%s: renamed from %s", path, name(file.Old))
		} else {
			b.note("%s: %s", path, file.Status)
		}
		if file.Binary {
			b.note("binary, not shown")
		}
		for h := range file.Hunks {
			hunk := &file.Hunks[h]
			if b.Len() > maxPatch {
				left += len(hunk.Lines)
				continue
			}
			v.hunk(b, path, hunk)
		}
	}
	if left > 0 {
		b.note("%d more lines are not shown", left)
	}
	if leftovers > 0 {
		b.note("files that tools left behind and that are not shown: %d", leftovers)
	}
	if parsed.Partial {
		b.note("the diff is not complete")
	}
	return b.done()
}

func (v *view) hunk(b *builder, path string, hunk *patch.Hunk) {
	b.note("lines %d to %d before, %d to %d after", hunk.OldStart, hunk.OldStart+max(0, hunk.OldCount-1), hunk.NewStart,
		hunk.NewStart+max(0, hunk.NewCount-1))
	for i, text := range v.hunkTexts(hunk) {
		line := hunk.Lines[i]
		switch line.Op {
		case patch.Plus:
			fmt.Fprintf(b, "%s:%d + | %s\n", path, line.New, text)
			b.section.added[path] = append(b.section.added[path], numbered{line.New, collapse(text)})
		case patch.Minus:
			fmt.Fprintf(b, "%s:-%d - | %s\n", path, line.Old, text)
			b.section.removed[path] = append(b.section.removed[path], numbered{line.Old, collapse(text)})
		default:
			fmt.Fprintf(b, "  | %s\n", text)
		}
	}
}

// hunkTexts cleans the lines of a hunk together, because a secret may span several. If that changes
// their number, no line of the hunk is shown.
func (v *view) hunkTexts(hunk *patch.Hunk) []string {
	texts := make([]string, len(hunk.Lines))
	for i, line := range hunk.Lines {
		texts[i] = strings.TrimSuffix(line.Text, "\r")
	}
	cleaned := strings.Split(v.clean(strings.Join(texts, "\n")), "\n")
	for i := range texts {
		if len(cleaned) != len(texts) {
			texts[i] = "[REDACTED]"
			continue
		}
		texts[i] = display.CutBytes(cleaned[i], maxLine)
	}
	return texts
}

// verify shows the harness's own check.
func (v *view) verify(prefix string) *section {
	b := newBuilder(prefix + "Verify")
	check := v.subject.verify()
	if check == nil {
		b.note("no check was run")
		return b.done()
	}
	outcome := "failed"
	if check.Passed {
		outcome = "passed"
	}
	address := prefix + "verify"
	b.cite(address, fmt.Sprintf("%s with exit code %d", outcome, check.ExitCode))
	b.cite(address, headAndTail(v.hide.paths(v.clean(v.subject.VerifyOutput)), maxVerify))
	return b.done()
}

// trace shows what the agent did.
func (v *view) trace(prefix string) *section {
	b := newBuilder(prefix + "Trace")
	steps := v.subject.Run.Steps
	if len(steps) == 0 {
		b.note("no trace")
	}
	if left := v.subject.Run.StepsLeftOut; left > 0 {
		b.note("%d steps are not shown", left)
	}
	texts, left := make([]string, len(steps)), 0
	for i := range steps {
		texts[i] = v.hide.paths(v.clean(canonicalTools(stepText(&steps[i]))))
	}
	from, to := middle(texts, maxTrace)
	for i := range steps {
		if i >= from && i < to {
			left++
			continue
		}
		if i == to && left > 0 {
			b.note("%d steps are not shown here", left)
		}
		b.cite(prefix+"trace:"+strconv.FormatInt(steps[i].Line, 10), texts[i])
	}
	return b.done()
}

// middle returns the part of texts to leave out so that the rest has at most limit bytes, half of
// them before it and half after it.
func middle(texts []string, limit int) (from, to int) {
	from, to = 0, len(texts)
	for size := 0; from < len(texts) && size+len(texts[from]) <= limit/2; from++ {
		size += len(texts[from])
	}
	for size := 0; to > from && size+len(texts[to-1]) <= limit/2; to-- {
		size += len(texts[to-1])
	}
	return from, to
}

// stepText returns a step as judges read it.
func stepText(step *evidence.Step) string {
	what := step.Kind
	if step.Tool != "" {
		what = step.Tool + " " + what
	}
	switch {
	case step.ExitCode != nil:
		what += " with exit code " + strconv.Itoa(*step.ExitCode)
	case step.IsError:
		what += " failed"
	}
	text := step.Text
	if step.Kind == evidence.StepCall && (step.Tool == session.ToolEdit || step.Tool == session.ToolWrite) {
		// the arguments of a call reveal the agent, and the patch has what was edited
		text, _, _ = strings.Cut(text, "{")
	}
	return what + ": " + strings.TrimRight(text, " \n")
}

// fence puts evidence between two marks. The mark is made from the evidence's own digest: no text
// can contain its own digest, and equal evidence makes equal requests.
func fence(parts shown) []byte {
	digest, size := sha256.New(), 128
	for _, part := range parts {
		size += len(part.text)
		digest.Write(part.sum[:])
	}
	mark := hex.EncodeToString(digest.Sum(nil)[:16])
	fenced := append(make([]byte, 0, size), "BEGIN EVIDENCE "+mark+"\n"...)
	for _, part := range parts {
		fenced = append(fenced, part.text...)
	}
	return append(fenced, "END EVIDENCE "+mark+"\n"...)
}

// headAndTail keeps the beginning and the end of a text.
func headAndTail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := display.FirstBytes(text, limit/2), display.LastBytes(text, limit/2)
	return fmt.Sprintf("%s\n… %d bytes left out …\n%s", head, len(text)-len(tail)-limit/2, tail)
}
