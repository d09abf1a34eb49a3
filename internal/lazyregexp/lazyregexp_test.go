package lazyregexp

import "testing"

func TestAnExpressionIsCompiledOnceAndWhenUsed(t *testing.T) {
	broken := New("(") // nothing happens until it is used
	word := New(`(\w+)-(\d+)`)
	if !word.MatchString("ask-7") || word.FindStringSubmatch("ask-7")[2] != "7" ||
		len(word.FindAllStringSubmatch("a-1 b-2", -1)) != 2 {
		t.Error("the expression does not match")
	}
	first, second := word.Get(), word.Get()
	if first != second {
		t.Error("it was compiled twice")
	}
	defer func() {
		if recover() == nil {
			t.Error("a malformed expression was used without a word")
		}
	}()
	broken.MatchString("x")
}
