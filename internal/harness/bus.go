package harness

// The bus is one queue per member, in the order in which messages were accepted. It is part of the
// state: appending never blocks, and the hub wakes members that have messages.

// receivers returns the members that receive a message: the one it names, or everybody but its
// sender. Members that have left the session receive nothing.
func (s *state) receivers(m *Message) []*member {
	if m.To != "" {
		if to := s.members[m.To]; to != nil && to.gone == "" {
			return []*member{to}
		}
		return nil
	}
	var all []*member
	for _, to := range s.order {
		if to.name != m.From && to.gone == "" {
			all = append(all, to)
		}
	}
	return all
}

// enqueue appends a message to the queues of its receivers.
func (s *state) enqueue(m *Message) {
	for _, to := range s.receivers(m) {
		to.queue = append(to.queue, m)
		s.queued++
	}
}

// take empties a member's queue and returns what was in it, oldest first.
func (s *state) take(m *member) []*Message {
	batch := m.queue
	m.queue = nil
	s.queued -= len(batch)
	return batch
}

// takeOnly takes the messages with the given ids from a member's queue.
func (s *state) takeOnly(m *member, ids ...int64) []*Message {
	wanted := make(map[int64]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	var batch, left []*Message
	for _, message := range m.queue {
		if wanted[message.ID] {
			batch = append(batch, message)
		} else {
			left = append(left, message)
		}
	}
	m.queue = left
	s.queued -= len(batch)
	return batch
}
