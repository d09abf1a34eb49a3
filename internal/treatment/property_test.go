package treatment

import (
	"fmt"
	"hash/maphash"
	"html"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFoldingUndoesWhatAgentsDo: whatever an agent does to spaces, entities and the beginnings of
// lines, the folded text is the same; and folding it again changes nothing.
func TestFoldingUndoesWhatAgentsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zé漢&<>"'#*-]{1,8}`), 1, 40).Draw(t, "words")
		var text, changed strings.Builder
		for i, word := range words {
			text.WriteString(word)
			changed.WriteString(rapid.SampledFrom([]string{word, html.EscapeString(word)}).Draw(t, "escaped"))
			if rapid.Bool().Draw(t, "line") {
				text.WriteString("\n")
				changed.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "end"))
				numbers := []string{"", fmt.Sprintf("%6d→", i), fmt.Sprintf("%d: ", i), fmt.Sprintf("%2d | ", i)}
				changed.WriteString(rapid.SampledFrom(numbers).Draw(t, "number"))
				continue
			}
			text.WriteString(" ")
			changed.WriteString(rapid.SampledFrom([]string{" ", "  ", "\t", "\u00a0"}).Draw(t, "space"))
		}
		want, got := fold(text.String()), fold(changed.String())
		if got != want || fold(got) != got {
			t.Fatalf("%q, %q, again %q", want, got, fold(got))
		}
	})
}

// TestTheShareIsWhatWasGiven: of a text of which an agent gives the beginning, at any word, among
// words of its own.
func TestTheShareIsWhatWasGiven(t *testing.T) {
	g := &grader{reader: &reader{seed: maphash.MakeSeed()}}
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(100, 400).Draw(t, "words")
		kept := rapid.IntRange(0, count).Draw(t, "kept")
		kinds := rapid.IntRange(0, 400).Draw(t, "kinds") // of words: a text may repeat itself
		words := make([]string, count)
		for i := range words {
			words[i] = fmt.Sprintf("word%03d", rapid.IntRange(0, kinds).Draw(t, "word"))
		}
		in := &part{text: "Words of the agent before " + strings.Join(words[:kept], " ") + " and words after it"}
		share, _ := g.share(in, strings.Join(words, " "))
		want := float64(kept) / float64(count)
		if math.Abs(share-want) > float64(2*rowLength)/float64(count) {
			t.Fatalf("%d of %d words are a share of %.3f", kept, count, share)
		}
	})
}
