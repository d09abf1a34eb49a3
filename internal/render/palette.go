package render

import (
	"fmt"
	"unicode/utf16"
)

type colour struct{ r, g, b uint8 }

// palette has a colour for every lane; errorColour is never one of them.
var (
	palette = [8]colour{
		{79, 195, 247},
		{129, 199, 132},
		{255, 202, 40},
		{236, 64, 122},
		{38, 198, 218},
		{186, 104, 200},
		{255, 167, 38},
		{66, 165, 245},
	}
	errorColour = colour{241, 76, 76}
)

const reset = "\x1b[0m"

func (c colour) start() string { return fmt.Sprintf("\x1b[38;2;%d;%d;%dm", c.r, c.g, c.b) }

// paletteIndex gives a lane the same colour in every session: FNV-1a over the UTF-16 units of its
// name and one more round with the name's length.
func paletteIndex(lane string) int {
	const basis, prime = 0x811c9dc5, 0x01000193
	hash := uint32(basis)
	units := utf16.Encode([]rune(lane))
	for _, unit := range units {
		hash = (hash ^ uint32(unit)) * prime
	}
	hash = (hash ^ uint32(len(units))) * prime
	return int(hash % uint32(len(palette)))
}

func laneColour(lane string) string {
	if lane == "" {
		return reset
	}
	return palette[paletteIndex(lane)].start()
}
