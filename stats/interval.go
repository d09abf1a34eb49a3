package stats

import "math"

// Interval is an estimate between its confidence limits, with the name of the method that made it.
type Interval struct {
	Est    float64 `json:"est"`
	Lo     float64 `json:"lo"`
	Hi     float64 `json:"hi"`
	SE     float64 `json:"se,omitempty"`
	Level  float64 `json:"level"`
	Method string  `json:"method"`
	// Warnings say what a reader must know before trusting the limits.
	Warnings []string `json:"warnings,omitempty"`
}

// Contains reports whether x lies within the limits, which belong to the interval.
func (i Interval) Contains(x float64) bool { return i.Lo <= x && x <= i.Hi }

// Excludes reports whether x lies strictly outside the limits.
func (i Interval) Excludes(x float64) bool { return x < i.Lo || x > i.Hi }

// Width returns the distance between the limits.
func (i Interval) Width() float64 { return i.Hi - i.Lo }

// symmetric builds est ± quantile·se.
func symmetric(est, se, quantile, level float64, method string) Interval {
	return Interval{
		Est:    est,
		Lo:     est - quantile*se,
		Hi:     est + quantile*se,
		SE:     se,
		Level:  level,
		Method: method,
	}
}

// cutTo cuts the limits to what is possible for a rate (least 0) or a difference of rates (least
// −1), both at most 1, and repairs the last rounding error so that the estimate is never outside.
func (i Interval) cutTo(least float64) Interval {
	i.Lo = math.Min(clamp(i.Lo, least, 1), i.Est)
	i.Hi = math.Max(clamp(i.Hi, least, 1), i.Est)
	return i
}

// hull returns the least interval that contains both.
func (i Interval) hull(other Interval) Interval {
	i.Lo, i.Hi = math.Min(i.Lo, other.Lo), math.Max(i.Hi, other.Hi)
	return i
}
