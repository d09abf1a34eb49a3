package judge

import (
	_ "embed" // the prompt
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// kindSentence is the question of whether a sentence about a run is true.
const kindSentence = "sentence"

// What a judge of a sentence is shown.
const (
	// ShownOutputs are the changes and the last message, for sentences about the result.
	ShownOutputs = "outputs"
	// ShownTrace is what the agent did, for sentences about its conduct.
	ShownTrace = "trace"
)

// Sentence is a sentence that is true of a good run.
type Sentence struct {
	Text  string `json:"text"`
	Shown string `json:"shown"` // ShownOutputs or ShownTrace
}

// SentenceVerdict is what a panel or a person says about a sentence of one attempt.
type SentenceVerdict struct {
	ledger.Cell
	Attempt int `json:"attempt"`
	// Index is the place of the sentence in its case.
	Index int `json:"index"`
	Sentence
	// Pass is nil where nobody decided yet.
	Pass *bool `json:"pass"`
	// By is who decided: byPanel or ByPerson.
	By string `json:"by,omitempty"`
	// Evidence lists the citations that hold, Why what the first judge of the majority wrote, or
	// why there is no verdict.
	Evidence []string `json:"evidence"`
	Why      string   `json:"why,omitempty"`
}

// Who decides about a sentence.
const (
	byPanel  = "panel"
	ByPerson = "person"
)

// sentencePrompt is not in the directory that --prompts replaces: a head to head has no sentences.
//
//go:embed sentence.md
var sentencePrompt string

// SentencePrompts are the built-in prompts with that of sentences.
func SentencePrompts() (Prompts, error) {
	prompts, err := LoadPrompts("")
	if err != nil {
		return nil, err
	}
	prompts[kindSentence] = sentencePrompt
	return prompts, nil
}

// sentenceQuestions asks about every sentence of every run that has a verdict.
func sentenceQuestions(d *deriver) iter.Seq[*question] {
	return func(yield func(*question) bool) {
		for i := range d.subjects {
			for _, one := range d.subjects[i].Sentences {
				if d.subjects[i].Problem == "" && !yield(sentenceQuestion(d.frames, &d.subjects[i], one)) {
					return
				}
			}
		}
	}
}

// sentenceQuestion returns the question about one sentence. Neither the sentence nor the task can
// be cited, nor a line that repeats the sentence or only claims a verdict.
func sentenceQuestion(f *frames, s *Subject, one Sentence) *question {
	v := newView(s)
	parts := shown{v.uncited("Sentence", one.Text), v.uncited("What was asked for", s.Task.Prompt)}
	if one.Shown == ShownTrace {
		parts = append(parts, v.part(v.trace, "trace", ""))
	} else {
		parts = append(parts, v.part(v.patch, "patch", ""), v.answer())
	}
	for _, part := range parts {
		part.silence(one.Text)
	}
	return newQuestion(question{
		kind:      kindSentence,
		dimension: one.Shown,
		about:     s.name() + ": " + display.CutBytes(one.Text, 200),
		frame:     f.of(kindSentence, one.Shown),
		body:      fence(parts),
		shown:     parts,
		refuted:   func(string) bool { return false },
	})
}

// uncited shows a text that is no evidence.
func (v *view) uncited(title, text string) *section {
	b := newBuilder(title)
	for line := range strings.Lines(display.CutBytes(v.clean(text), maxPrompt)) {
		b.WriteString("  | " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.done()
}

// answer shows the last message of the agent.
func (v *view) answer() *section {
	b := newBuilder("Last message")
	if strings.TrimSpace(v.subject.Answer) == "" {
		b.note("there is none")
	}
	b.cite("answer", headAndTail(v.hide.paths(v.clean(v.subject.Answer)), maxPrompt))
	return b.done()
}

// bareVerdict matches lines that say nothing but that something passed.
var bareVerdict = lazyregexp.New(`(?i)^\W*((verdict|result|status|grade|assertions?|expectations?|sentence|test|checks?|` +
	`all|is|are|true|passed|pass|success|ok|correct)\W*)+$`)

// silence takes from the lines that can be cited those that repeat the sentence, which prove
// nothing, and those that only claim a verdict.
func (s *section) silence(sentence string) {
	words := foldedWords(sentence)
	mute := func(text string) bool {
		return bareVerdict.Get().MatchString(text) && foldedWords(text) != "" ||
			len(strings.Fields(words)) >= 3 && strings.Contains(foldedWords(text), words)
	}
	for address, lines := range s.other {
		s.other[address] = slices.DeleteFunc(lines, mute)
	}
	for _, files := range []map[string][]numbered{s.added, s.removed} {
		for path, lines := range files {
			files[path] = slices.DeleteFunc(lines, func(l numbered) bool { return mute(l.text) })
		}
	}
}

// foldedWords returns the words of a text in lower case, with one space between them.
func foldedWords(text string) string {
	return strings.ToLower(strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), " "))
}

func undecided(s *Subject, index int) SentenceVerdict {
	return SentenceVerdict{
		Cell:     s.cell(),
		Attempt:  s.Attempt,
		Index:    index,
		Sentence: s.Sentences[index],
		Evidence: []string{},
	}
}

// DeriveSentences derives the verdicts on the sentences of runs from replies, as Derive does. The
// second result counts the questions that have no reply yet.
func DeriveSentences(replies *Replies, settings Settings, subjects []Subject,
) (verdicts []SentenceVerdict, missing int) {
	d := newDeriver(settings, subjects, replies.find)
	d.selfTest()
	for i := range subjects {
		s := &subjects[i]
		for k, one := range s.Sentences {
			v := undecided(s, k)
			if s.Problem != "" {
				v.Why = s.Problem
			} else {
				v.take(d.panelVerdict(sentenceQuestion(d.frames, s, one)))
			}
			verdicts = append(verdicts, v)
		}
	}
	return verdicts, d.missing
}

// MergeSentences returns a verdict for every sentence of the subjects, in their order: the one that
// is known, or an undecided one.
func MergeSentences(subjects []Subject, known []SentenceVerdict) []SentenceVerdict {
	type key struct {
		ledger.Cell
		attempt, index int
		text           string
	}
	have := map[key]SentenceVerdict{}
	for _, v := range known {
		have[key{v.Cell, v.Attempt, v.Index, v.Text}] = v
	}
	var all []SentenceVerdict
	for i := range subjects {
		s := &subjects[i]
		for k, one := range s.Sentences {
			v, found := have[key{s.cell(), s.Attempt, k, one.Text}]
			if !found {
				v = undecided(s, k)
			}
			all = append(all, v)
		}
	}
	return all
}

// take fills in what the panel says. A sentence that no judge can prove or refute with a citation
// does not pass; one that a judge could not be asked about is undecided.
func (v *SentenceVerdict) take(panel PanelVerdict) {
	v.By = byPanel
	for _, vote := range panel.Votes {
		switch {
		case panel.Result != nil && vote.Result != nil && *vote.Result == *panel.Result:
			v.Evidence, v.Why = append(v.Evidence, vote.Evidence...), firstOf(v.Why, vote.Critique)
		case panel.Result == nil:
			v.Why = firstOf(v.Why, vote.Reason)
		}
	}
	uncited := slices.ContainsFunc(panel.Votes, func(vote JudgeVerdict) bool { return vote.Reason == noCitation })
	switch {
	case panel.Result != nil:
		v.Pass = new(*panel.Result == Pass)
	case panel.Missing == 0 && uncited && panel.Pass == 0:
		v.Pass, v.Why = new(false), noCitation
	default:
		v.Why = firstOf(v.Why, "the panel did not decide")
	}
}

func firstOf(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// SentencesFile is the file of a run directory with the verdicts on sentences.
const SentencesFile = "sentences.json"

type sentencesDocument struct {
	Version   int               `json:"version"`
	Sentences []SentenceVerdict `json:"sentences"`
}

// ReadSentences reads the verdicts on sentences in a run directory; none if nobody was asked.
func ReadSentences(dir string) ([]SentenceVerdict, error) {
	path := filepath.Join(dir, SentencesFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found sentencesDocument
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; remove it and rerun fit skill test, which writes it again", path, err)
	}
	return slices.DeleteFunc(found.Sentences, nobodyDecided), nil
}

// nobodyDecided reports whether nobody was asked: a person who skips a sentence says nothing of it.
// A panel that was asked and did not decide leaves missing data.
func nobodyDecided(v SentenceVerdict) bool { return v.Pass == nil && v.By == "" }

// WriteSentences replaces the verdicts in a run directory. What people said before about the same
// attempts and sentences stays.
func WriteSentences(dir string, verdicts []SentenceVerdict) error {
	before, err := ReadSentences(dir)
	if err != nil {
		return err
	}
	for i := range verdicts {
		v := &verdicts[i]
		for k := range before {
			if b := &before[k]; b.By == ByPerson && v.By != ByPerson && b.Cell == v.Cell && b.Attempt == v.Attempt &&
				b.Text == v.Text {
				*v = *b
			}
		}
	}
	decided := slices.DeleteFunc(slices.Clone(verdicts), nobodyDecided)
	text, err := json.MarshalIndent(sentencesDocument{Version: 1, Sentences: decided}, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.WriteSynced(filepath.Join(dir, SentencesFile), 0o600, append(text, '\n'))
}

// SentenceItem is what a person is shown who judges a sentence: what a judge is shown.
func SentenceItem(s *Subject, one Sentence) string {
	var text strings.Builder
	for _, part := range sentenceQuestion(newFrames(Prompts{}), s, one).shown {
		text.WriteString(part.text + "\n")
	}
	return text.String()
}
