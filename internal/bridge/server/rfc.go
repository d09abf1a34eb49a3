package server

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/harness"
)

// What requests for comment may open: each starts a run of its own.
const (
	maxRFCs  = 10 // of one run
	maxDepth = 2  // of requests in threads that were opened for one
)

// rfcOrigin is the run that asked for a thread.
type rfcOrigin struct {
	thread, run, id string
	depth           int
}

// openRFCs opens the threads that the participants of a run asked for, and starts their runs. One
// that is open already stays as it is.
func (c *change) openRFCs(tenant, thread, run string, rfcs []harness.RFC) error {
	var depth int
	if _, err := c.one(`SELECT depth + 1 FROM thread WHERE id = ?`, []any{thread}, &depth); err != nil {
		return err
	}
	addressees := map[string][]string{}
	var order []harness.RFC
	for _, rfc := range rfcs { // one for each addressee
		if _, known := addressees[rfc.CorrelationID]; !known {
			order = append(order, rfc)
		}
		addressees[rfc.CorrelationID] = append(addressees[rfc.CorrelationID], rfc.Addressee)
	}
	for i, rfc := range order {
		if depth > maxDepth || i >= maxRFCs {
			_, err := c.add(thread, newPost{
				role: roleNotice,
				body: fmt.Sprintf("%d requests for comment opened no thread: a run may open %d, %d deep.",
					len(order)-i, maxRFCs, maxDepth),
				key: "rfcs of " + run,
			})
			return err
		}
		if err := c.openRFC(tenant, rfcOrigin{thread, run, rfc.CorrelationID, depth}, rfc,
			strings.Trim(strings.Join(addressees[rfc.CorrelationID], ", "), ", ")); err != nil {
			return err
		}
	}
	return nil
}

func (c *change) openRFC(tenant string, origin rfcOrigin, rfc harness.RFC, to string) error {
	var known string
	found, err := c.one(`SELECT id FROM thread WHERE asked_by = ? AND asked_as = ?`, []any{origin.run, origin.id}, &known)
	if err != nil || found {
		return err
	}
	body := rfc.Body
	if to != "" {
		body += "\n\nFor: " + to
	}
	first, _, _ := strings.Cut(rfc.Body, "\n")
	opened, err := c.openThread(tenant, display.CutRunes(rfc.Channel+": "+first, 120), &origin)
	if err != nil {
		return err
	}
	if _, err := c.add(opened, newPost{role: roleAgent, author: rfc.Agent, body: body}); err != nil {
		return err
	}
	if _, err := c.add(origin.thread, newPost{
		role: roleNotice,
		body: fmt.Sprintf("%s asks for comments in %s (%s): %s", rfc.Agent, rfc.Channel, opened, rfc.Body),
		key:  origin.run + " " + origin.id,
	}); err != nil {
		return err
	}
	return c.queue(opened, body, nil)
}

// report takes what came of a thread that was opened for comments to the one that asked.
func (c *change) report(thread, run, outcome string) error {
	var in, channel string
	found, err := c.one(`SELECT asked_in, title FROM thread WHERE id = ? AND asked_in IS NOT NULL`, []any{thread},
		&in, &channel)
	if err != nil || !found {
		return err
	}
	_, err = c.say(in, newPost{
		role:   roleOutcome,
		author: channel,
		body:   outcome,
		key:    "outcome of " + run,
	})
	return err
}
