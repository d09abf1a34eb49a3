package session

import "strings"

// recentMessages bounds the memory of de-duplication: a message is repeated on neighbouring lines,
// never thousands of messages later.
const recentMessages = 4096

// reportLog remembers the last report of each recent message or thread. Its zero value is ready.
type reportLog struct {
	places  map[string]int // of each key's report
	reports []UsageReport
	oldest  int // the report that is overwritten next, once there are many
}

// set remembers a report and returns the one that it replaces. The model's name is not kept.
func (l *reportLog) set(r UsageReport) (before UsageReport, seen bool) {
	r.Model = ""
	if place, known := l.places[r.Key]; known {
		before = l.reports[place]
		r.Key = before.Key
		l.reports[place] = r
		return before, true
	}
	r.Key = strings.Clone(r.Key)
	if l.places == nil {
		l.places = map[string]int{}
	}
	place := len(l.reports)
	if place < recentMessages {
		l.reports = append(l.reports, r)
	} else {
		place, l.oldest = l.oldest, (l.oldest+1)%recentMessages
		delete(l.places, l.reports[place].Key)
		l.reports[place] = r
	}
	l.places[r.Key] = place
	return UsageReport{}, false
}

// forget drops all reports.
func (l *reportLog) forget() {
	switch {
	case len(l.reports) == 0:
	case len(l.reports) > 64: // clearing a large map takes as long when there is little in it
		*l = reportLog{}
	default:
		clear(l.places)
		l.reports, l.oldest = l.reports[:0], 0
	}
}
