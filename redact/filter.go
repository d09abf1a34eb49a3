package redact

import (
	"encoding/binary"
)

const (
	gramSize   = 4
	filterBits = 18
	// gramHash spreads four bytes over the filter: the golden ratio of 2³².
	gramHash = 0x9E3779B1
)

// gramFilter says, for every position of a text, whether the four bytes there may be an anchor. It
// has false positives, but no false negatives. Each entry is a set of eight, so that a second part
// of the hash distinguishes what shares the entry.
type gramFilter [1 << filterBits]uint8

func hashGram(gram uint32) uint32 { return gram * gramHash >> (32 - filterBits) }

func hashBit(gram uint32) uint8 { return 1 << (gram * gramHash >> (32 - filterBits - 3) & 7) }

func gramAt(text []byte, i int) uint32 { return binary.LittleEndian.Uint32(text[i:]) }

func (f *gramFilter) add(gram uint32) { f[hashGram(gram)] |= hashBit(gram) }

func (f *gramFilter) has(gram uint32) bool { return f[hashGram(gram)]&hashBit(gram) != 0 }

// next returns the first position from i on where an anchor may be, or -1. It
// looks at eight positions for each branch; this loop is where clean data
// spends its time.
func (f *gramFilter) next(text []byte, i int) int {
	const step = 8
	for rest := text[i:]; len(rest) >= step+gramSize; rest = rest[step:] {
		v := binary.LittleEndian.Uint64(rest)
		w := binary.LittleEndian.Uint64(rest[gramSize:])
		any := f[hashGram(uint32(v))] | f[hashGram(uint32(v>>8))] | f[hashGram(uint32(v>>16))] | f[hashGram(
			uint32(v>>24))] |
			f[hashGram(uint32(w))] | f[hashGram(uint32(w>>8))] | f[hashGram(uint32(w>>16))] | f[hashGram(uint32(w>>24))]
		if any != 0 {
			for j := range step {
				if f.has(gramAt(rest, j)) {
					return i + j
				}
			}
		}
		i += step
	}
	for ; i+gramSize <= len(text); i++ {
		if f.has(gramAt(text, i)) {
			return i
		}
	}
	return -1
}

// anchorAction says what a hit of an anchor asks for.
type anchorAction uint8

const (
	comparePattern anchorAction = iota // a form of a secret may be here
	matchShape                         // a credential shape may be here
	checkUnicode                       // \u00: an ASCII character may be escaped
	wantDecoding                       // an escape that no innocent text has
)

// anchor is one meaning of four bytes: the form or shape number, and the offset of the four bytes
// in it.
type anchor struct {
	action anchorAction
	number int32
	offset int32
}

// anchorTable finds the meanings of four bytes: the filter rejects most positions quickly, and the
// slots, a hash table, hold the meanings.
type anchorTable struct {
	filter gramFilter
	grams  map[uint32][]anchor
	slots  []anchorSlot
}

type anchorSlot struct {
	gram    uint32
	anchors []anchor
}

func (t *anchorTable) add(gram string, a anchor) {
	g := gramAt([]byte(gram), 0)
	t.filter.add(g)
	t.grams[g] = append(t.grams[g], a)
}

// freeze builds the slots; nothing is added afterwards.
func (t *anchorTable) freeze() {
	size := 1
	for size < 4*len(t.grams) {
		size *= 2
	}
	t.slots = make([]anchorSlot, size)
	for gram, anchors := range t.grams {
		i := int(gram*gramHash>>8) & (size - 1)
		for t.slots[i].anchors != nil {
			i = (i + 1) & (size - 1)
		}
		t.slots[i] = anchorSlot{gram, anchors}
	}
	t.grams = nil
}

func (t *anchorTable) lookup(gram uint32) []anchor {
	mask := len(t.slots) - 1
	for i := int(gram*gramHash>>8) & mask; t.slots[i].anchors != nil; i = (i + 1) & mask {
		if t.slots[i].gram == gram {
			return t.slots[i].anchors
		}
	}
	return nil
}
