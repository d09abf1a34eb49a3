package calls

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Ranges is a list of chunk numbers, in order. It is written as ranges, "0-20,33", because most
// chunks of a request are those of the one before.
type Ranges []uint32

// maxChunks bounds the chunks of one body, so that a damaged or hostile file cannot make a reader
// allocate at will.
const maxChunks = 1 << 20

// MarshalText writes the ranges.
func (r Ranges) MarshalText() ([]byte, error) {
	var text []byte
	for i := 0; i < len(r); {
		last := i
		for last+1 < len(r) && r[last+1] == r[last]+1 {
			last++
		}
		if len(text) > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, uint64(r[i]), 10)
		if last > i {
			text = strconv.AppendUint(append(text, '-'), uint64(r[last]), 10)
		}
		i = last + 1
	}
	return text, nil
}

// UnmarshalText reads what MarshalText writes.
func (r *Ranges) UnmarshalText(text []byte) error {
	*r = nil
	if len(text) == 0 {
		return nil
	}
	for part := range strings.SplitSeq(string(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.ParseUint(first, 10, 32)
		to := from
		if err == nil && isRange {
			to, err = strconv.ParseUint(last, 10, 32)
		}
		switch {
		case err != nil || to < from:
			return fmt.Errorf("%q is not a range of chunks", part)
		case uint64(len(*r))+to-from >= maxChunks:
			return errors.New("too many chunks")
		}
		for n := from; n <= to; n++ {
			*r = append(*r, uint32(n))
		}
	}
	return nil
}
