package session

import "time"

// ParseTime reads an ISO 8601 timestamp as epoch milliseconds; 0 if it is not valid.
func ParseTime(stamp string) int64 {
	if stamp == "" { // an error would take longer to make
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}
