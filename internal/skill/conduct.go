package skill

import (
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// The values of "about" in a statement: what it is about, where the words do not show it.
const (
	aboutConduct = "conduct"
	aboutResult  = "result"
)

var (
	// resultSubject matches the beginnings of sentences about what there is in the end.
	resultSubject = lazyregexp.New(`(?i)^\W*(the |its? |an? |final |generated |resulting |all |every |each |any )*` +
		`(outputs?|reports?|files?|charts?|answers?|responses?|summar(y|ies)|documents?|reply|message|table|text|code|` +
		`plan|list|title|headline|section|page|result|description|json|csv|yaml|markdown|diff|email|draft)\b`)
	// conductVerb matches what somebody does on the way.
	conductVerb = lazyregexp.New(`(?i)\b(asks?|asking|reads?|opens?|loads?|consults?|searches|runs?|executes?|invokes?|` +
		`calls?|fetch(es)?|waits?|stops?|refuses?|declines?|confirms?|delegates?|spawns?|commits?|push(es)?|installs?|` +
		`activates?|triggers?|edit(s|ing)?|modif(y|ies|ying)|deletes?|deleting|overwrites?|touch(es)?|before (it |the )?` +
		`[a-z]+ing|us(es|ing) the [a-z_-]+ (tool|skill|script|command))\b`)
)

// isConduct guesses whether a sentence is about what the agent does, and not about what is there in
// the end. It knows English; other sentences are about the result unless the file says otherwise.
func isConduct(sentence string) bool {
	return conductVerb.Get().MatchString(sentence) && !resultSubject.Get().MatchString(strings.TrimSpace(sentence))
}
