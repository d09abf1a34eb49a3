package view

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// transcript is a trace on its way into a file.
type transcript struct {
	id      string // escaped, as in addresses
	entries int
	packed  map[string]string // the answers that were asked for, by their addresses
}

// transcripts keeps traces: whole ones while they fit, then what fits of the others.
func (f *frozen) transcripts(ctx context.Context, ids []string) error {
	var rest []string
	f.full = 0
	for _, id := range ids {
		if f.full >= maxFull {
			rest = append(rest, id)
			continue
		}
		t, err := f.begin(ctx, id)
		if err != nil {
			return err
		}
		whole, err := f.whole(ctx, t)
		if err != nil {
			return err
		}
		if !whole {
			rest = append(rest, id)
		}
	}
	f.full = 0
	for _, id := range rest {
		kept := false
		if f.full < maxFull {
			t, err := f.begin(ctx, id)
			if err != nil {
				return err
			}
			if kept, err = f.part(ctx, id, t); err != nil {
				return err
			}
		}
		if !kept {
			f.LeftOut++
		}
	}
	return nil
}

// begin asks for what every transcript needs. The overview of a large trace is awaited.
func (f *frozen) begin(ctx context.Context, id string) (*transcript, error) {
	t := &transcript{id: component(id), packed: map[string]string{}}
	overview := "/api/trace/overview?trace=" + t.id
	for {
		answer, err := f.answer(ctx, overview)
		if err != nil {
			return nil, err
		}
		var known struct {
			Entries *int `json:"entries"`
		}
		if err := json.Unmarshal(answer, &known); err != nil {
			return nil, err
		}
		if known.Entries != nil {
			t.entries, t.packed[overview] = *known.Entries, pack(answer)
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(patience):
		}
	}
	for _, address := range []string{
		fmt.Sprintf("/api/trace/lanes?trace=%s&buckets=%d", t.id, exportBuckets), "/api/trace/messages?trace=" + t.id,
	} {
		answer, err := f.answer(ctx, address)
		if err != nil {
			return nil, err
		}
		t.packed[address] = pack(answer)
	}
	return t, nil
}

func (t *transcript) page(n int) string {
	return "/api/trace/page?trace=" + t.id + "&page=" + strconv.Itoa(n)
}

func (t *transcript) pages() int { return max(1, (t.entries+pageSize-1)/pageSize) }

// whole keeps a transcript if it fits completely.
func (f *frozen) whole(ctx context.Context, t *transcript) (bool, error) {
	if t.entries == 0 {
		f.empty++
	}
	size := 0
	for address, packed := range t.packed {
		size += len(address) + len(packed)
	}
	for n := 0; n < t.pages() && f.bytes+size <= f.limit; n++ {
		answer, err := f.answer(ctx, t.page(n))
		if err != nil {
			return false, err
		}
		t.packed[t.page(n)] = pack(answer)
		size += len(t.packed[t.page(n)]) + len(t.page(n)) + 8
	}
	if f.bytes+size > f.limit {
		f.full++
		return false, nil
	}
	f.full = 0
	for address, packed := range t.packed {
		f.put(address, packed)
	}
	for n := range t.pages() {
		if err := f.images(ctx, t, n); err != nil {
			return false, err
		}
	}
	f.full = 0
	return true, nil
}

// images keeps the images of a page of a transcript that fit.
func (f *frozen) images(ctx context.Context, t *transcript, n int) error {
	answer, err := f.answer(ctx, t.page(n))
	if err != nil {
		return err
	}
	var page struct {
		Items []entry `json:"items"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return err
	}
	for i := range page.Items {
		for at := range page.Items[i].Blocks {
			for _, image := range page.Items[i].Blocks[at].images(page.Items[i].Index, at) {
				address := fmt.Sprintf("/api/trace/image?trace=%s&n=%d&block=%d", t.id, image.N, image.Block)
				if content, err := f.answer(ctx, address); err == nil {
					f.fits(address, string(content)) // else the page says that it is not there
				}
			}
		}
	}
	return nil
}

// part keeps what fits of a transcript: its first and its last entries, its errors, and then on
// from the beginning.
func (f *frozen) part(ctx context.Context, id string, t *transcript) (bool, error) {
	before := f.bytes
	for address, packed := range t.packed {
		if !f.fits(address, packed) {
			return false, nil // nothing of it can be shown
		}
	}
	pages := []int{0, t.pages() - 1}
	var errors findAnswer
	answer, err := f.answer(ctx, "/api/trace/find?trace="+t.id+"&errors=1")
	if err == nil {
		err = json.Unmarshal(answer, &errors)
	}
	if err != nil {
		return false, err
	}
	for _, index := range errors.Indexes {
		pages = append(pages, index/pageSize)
	}
	kept, tried := [][2]int{}, map[int]bool{}
	for n := 1; n < t.pages()-1; n++ {
		pages = append(pages, n)
	}
	for _, n := range pages {
		if tried[n] {
			continue
		}
		tried[n] = true
		held, err := f.entries(ctx, t, n, n > 0 && n == t.pages()-1)
		if err != nil {
			return false, err
		}
		if held[0] < held[1] {
			kept = append(kept, held)
		}
		if held[1]-held[0] < min(pageSize, t.entries-n*pageSize) && n > 0 && n < t.pages()-1 {
			break // the file is full
		}
	}
	if len(kept) == 0 {
		for address := range t.packed {
			delete(f.Responses, address)
		}
		f.bytes = before
		return false, nil
	}
	slices.SortFunc(kept, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	if f.Kept == nil {
		f.Kept = map[string][][2]int{}
	}
	f.Kept[id] = kept
	return true, nil
}

// entries keeps a page of a transcript, or as many of its entries as fit: the first ones, or the
// last ones. It returns which.
func (f *frozen) entries(ctx context.Context, t *transcript, n int, last bool) (held [2]int, err error) {
	answer, err := f.answer(ctx, t.page(n))
	if err != nil {
		return held, err
	}
	var page struct {
		Version int               `json:"version"`
		Page    int               `json:"page"`
		Items   []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return held, err
	}
	first := n * pageSize
	for len(page.Items) > 0 {
		content, err := json.Marshal(page)
		if err != nil {
			return held, err
		}
		if f.fits(t.page(n), pack(content)) {
			return [2]int{first, first + len(page.Items)}, nil
		}
		half := len(page.Items) / 2
		if last {
			first += len(page.Items) - half
			page.Items = page.Items[len(page.Items)-half:]
		} else {
			page.Items = page.Items[:half]
		}
	}
	return held, nil
}
