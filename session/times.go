package session

import (
	"strings"
	"time"
)

// TimeParser reads ISO 8601 timestamps; neighbouring lines are often of the same day, or carry the
// same one. Its zero value is ready.
type TimeParser struct {
	last   string
	lastMs int64
	day    string // the date that the last time in the usual form began with
	dayMs  int64
}

// Parse returns a timestamp as epoch milliseconds; 0 if it is none.
func (p *TimeParser) Parse(stamp string) int64 {
	if stamp == "" {
		return 0
	}
	if sinceMidnight, ok := timeOfDay(stamp); ok {
		if stamp[:dateLength] == p.day {
			return p.dayMs + sinceMidnight
		}
		day, err := time.Parse(time.DateOnly, stamp[:dateLength])
		if err != nil {
			return 0
		}
		p.day, p.dayMs = strings.Clone(stamp[:dateLength]), day.UnixMilli()
		return p.dayMs + sinceMidnight
	}
	if stamp == p.last {
		return p.lastMs
	}
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return 0
	}
	p.last, p.lastMs = strings.Clone(stamp), t.UnixMilli()
	return p.lastMs
}

const (
	// utcForm is the form in which all agents write their times.
	utcForm    = "0000-00-00T00:00:00.000Z"
	dateLength = len("0000-00-00")
)

// timeOfDay reads the milliseconds since midnight from a time of exactly that form, many times as
// fast as time.Parse. The date is not looked at.
func timeOfDay(stamp string) (ms int64, ok bool) {
	if len(stamp) != len(utcForm) {
		return 0, false
	}
	clock := stamp[dateLength:]
	if clock[0] != 'T' || clock[3] != ':' || clock[6] != ':' || clock[9] != '.' || clock[13] != 'Z' {
		return 0, false
	}
	for _, at := range [...]int{1, 2, 4, 5, 7, 8, 10, 11, 12} {
		if !isDigit(clock[at]) {
			return 0, false
		}
	}
	digit := func(at int) int64 { return int64(clock[at] - '0') }
	hour, minute, second := digit(1)*10+digit(2), digit(4)*10+digit(5), digit(7)*10+digit(8)
	if hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return ((hour*60+minute)*60+second)*1000 + digit(10)*100 + digit(11)*10 + digit(12), true
}

// ParseTime reads an ISO 8601 timestamp as epoch milliseconds; 0 if it is none.
func ParseTime(stamp string) int64 { return new(TimeParser).Parse(stamp) }
