package session

const (
	// recentCalls is how many calls are held ready to be found without a map, which is more than
	// most agents make at once.
	recentCalls = 8
	// maxOpenCalls bounds the memory for calls whose result never comes.
	maxOpenCalls = 4096
	// maxKeptName is the size above which the memory of an id or path is not kept.
	maxKeptName = 4 << 10
)

// openCall is a call that waits for its result, with what will be needed then.
type openCall struct {
	id, path, head []byte // in its own memory, which the next call reuses
	canonical      string
	effective      string
	turn           int
}

// openCalls are the calls that wait for their results. Its zero value is ready.
type openCalls struct {
	recent [recentCalls]openCall // the youngest, oldest first; what lies beyond count is free
	count  int
	older  map[string]*openCall
	order  []string // the older ones, oldest first, so that the map stays bounded
}

func (c *openCalls) len() int { return c.count + len(c.older) }

// add returns the place of a new call, with its id set and everything else left from an earlier
// one. A call that has the same id is forgotten.
func (c *openCalls) add(id string) *openCall {
	c.take(id)
	if c.count == recentCalls {
		c.retire()
	}
	call := &c.recent[c.count]
	c.count++
	call.id = refilled(call.id, id)
	return call
}

// take removes a call and returns it, nil if there is none of that id. It is valid until the next
// one is added.
func (c *openCalls) take(id string) *openCall {
	for i := c.count - 1; i >= 0; i-- {
		if string(c.recent[i].id) == id {
			return c.remove(i)
		}
	}
	call := c.older[id]
	if call == nil {
		return nil
	}
	delete(c.older, id)
	for len(c.order) > 0 {
		if _, open := c.older[c.order[0]]; open {
			break
		}
		c.order = c.order[1:]
	}
	return call
}

// remove takes a recent call out of the row and returns it from the free place behind it.
func (c *openCalls) remove(i int) *openCall {
	c.count--
	if i < c.count { // most often it is the youngest
		removed := c.recent[i]
		copy(c.recent[i:c.count], c.recent[i+1:])
		c.recent[c.count] = removed
	}
	return &c.recent[c.count]
}

// retire moves the oldest of the recent calls to the older ones, of which the oldest is forgotten
// when there are many.
func (c *openCalls) retire() {
	free := c.remove(0)
	oldest := *free
	*free = openCall{}
	if c.older == nil {
		c.older = map[string]*openCall{}
	}
	id := string(oldest.id)
	c.older[id] = &oldest
	c.order = append(c.order, id)
	for len(c.order) > maxOpenCalls {
		delete(c.older, c.order[0])
		c.order = c.order[1:]
	}
}

// refilled copies a text into memory that held another one.
func refilled(memory []byte, text string) []byte {
	if cap(memory) > maxKeptName {
		memory = nil
	}
	return append(memory[:0], text...)
}
