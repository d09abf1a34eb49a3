package agent

import "sync"

// Requests numbers the requests of a long-lived protocol, and keeps awaited answers until they are
// fetched. The zero value is ready.
type Requests[Answer any] struct {
	mu      sync.Mutex
	last    int64
	awaited map[int64]*Answer // nil before the answer has come
}

// Begin returns the number of a new request. With wait its answer is kept.
func (r *Requests[Answer]) Begin(wait bool) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	if wait {
		if r.awaited == nil {
			r.awaited = map[int64]*Answer{}
		}
		r.awaited[r.last] = nil
	}
	return r.last
}

// Answered keeps an answer. It reports false if the answer is not awaited.
func (r *Requests[Answer]) Answered(number int64, answer Answer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, waits := r.awaited[number]; !waits || before != nil {
		return false
	}
	r.awaited[number] = &answer
	return true
}

// Fetch returns an answer once it has come.
func (r *Requests[Answer]) Fetch(number int64) (answer Answer, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.awaited[number]
	if kept == nil {
		return answer, false
	}
	delete(r.awaited, number)
	return *kept, true
}
