package experiment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// Shard is the I-th of N parts of an experiment, counted from 1. The zero value is the whole.
type Shard struct {
	I int `json:"i,omitempty"`
	N int `json:"n,omitempty"`
}

func (s Shard) String() string {
	if s.N == 0 {
		return "1/1"
	}
	return fmt.Sprintf("%d/%d", s.I, s.N)
}

var shardForm = lazyregexp.New(`^([0-9]{1,6})/([0-9]{1,6})$`)

// ParseShard reads i/N. Empty text is the whole.
func ParseShard(text string) (Shard, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Shard{}, nil
	}
	parts := shardForm.FindStringSubmatch(text)
	if parts == nil {
		return Shard{}, fmt.Errorf("shard %q: must be i/N, e.g. 1/3", text)
	}
	i, errI := strconv.Atoi(parts[1])
	n, errN := strconv.Atoi(parts[2])
	if err := errors.Join(errI, errN); err != nil {
		return Shard{}, err
	}
	if i < 1 || i > n {
		return Shard{}, fmt.Errorf("shard %q: the first number goes from 1 to the second", text)
	}
	if n == 1 {
		return Shard{}, nil
	}
	return Shard{I: i, N: n}, nil
}

// Slot is one task and repetition: the unit that is distributed to shards, so that the arms that
// are compared run on the same machine.
type Slot struct {
	TaskID   string
	RunIndex int
}

// Slots lists the grid in the order that is distributed to shards: tasks first, repetitions second.
func (p *Plan) Slots() []Slot {
	slots := make([]Slot, 0, len(p.Tasks)*p.Runs)
	for _, t := range p.Tasks {
		for run := range p.Runs {
			slots = append(slots, Slot{t.ID, run})
		}
	}
	return slots
}

// Of keeps the slots of the shard: those at positions p with p mod N == I−1.
func (s Shard) Of(slots []Slot) []Slot {
	if s.N <= 1 {
		return slots
	}
	var mine []Slot
	for p, slot := range slots {
		if p%s.N == s.I-1 {
			mine = append(mine, slot)
		}
	}
	return mine
}

// Cells lists the cells of the plan's shard in the order in which they are run: first repetitions
// of all tasks before second ones, so that an experiment that ends early has tried every task, and
// the arms of a slot side by side in an order drawn from the seed, so that drift affects all arms
// alike. An experiment that may stop early runs task by task instead, in an order drawn from the
// seed: a task must be complete before it counts.
func (p *Plan) Cells() []Cell {
	slots := slices.Clone(p.Shard.Of(p.Slots()))
	if p.Stop != nil {
		p.orderForStop(slots)
	} else {
		slices.SortStableFunc(slots, func(a, b Slot) int { return a.RunIndex - b.RunIndex })
	}
	cells := make([]Cell, 0, len(slots)*len(p.Arms))
	for _, slot := range slots {
		start := len(cells)
		for _, arm := range p.Arms {
			cells = append(cells, p.cellOf(slot, arm.Name))
		}
		slices.SortFunc(cells[start:], func(a, b Cell) int {
			return cmp.Compare(draw(p.Seed, "order", a.TaskID, a.Arm, a.RunIndex),
				draw(p.Seed, "order", b.TaskID, b.Arm, b.RunIndex))
		})
	}
	return cells
}

// cellOf makes the cell of a slot and an arm. Its seed fits into the integers that every JSON
// reader keeps exact.
func (p *Plan) cellOf(slot Slot, arm string) Cell {
	return Cell{
		Arm:      arm,
		TaskID:   slot.TaskID,
		RunIndex: slot.RunIndex,
		Seed:     draw(p.Seed, "cell", slot.TaskID, arm, slot.RunIndex) >> 11,
	}
}

// draw returns a number that depends only on its arguments.
func draw(seed uint64, purpose, task, arm string, run int) uint64 {
	h := fnv.New64a()
	var number [16]byte
	binary.BigEndian.PutUint64(number[:8], seed)
	binary.BigEndian.PutUint64(number[8:], uint64(run))
	for _, part := range [][]byte{number[:], []byte(purpose), {0}, []byte(task), {0}, []byte(arm)} {
		_, _ = h.Write(part) // a hash takes everything
	}
	x := h.Sum64() // the last bytes written have moved few bits so far: spread them
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
