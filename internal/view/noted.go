package view

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/fit-eval/fit/internal/notes"
	"github.com/fit-eval/fit/ledger"
)

// note is a note as pages show it.
type note struct {
	notes.Note
	Seal notes.Seal `json:"seal"`
	// Stale is set where the note is about another result than the cell has now.
	Stale bool `json:"stale,omitempty"`
}

// notesAnswer is the answer of /api/experiments/{x}/notes.
type notesAnswer struct {
	Version int    `json:"version"`
	Notes   []note `json:"notes"`
}

// notes answers with all notes and saved views of a run directory.
func (s *Server) notes(_ *http.Request, at location) (any, error) {
	list, err := s.notesOf(at, func(*notes.Note) bool { return true })
	return notesAnswer{Version: version, Notes: list}, err
}

// notesOf reads the notes of a run directory that meet a condition. They are anybody's texts.
func (s *Server) notesOf(at location, wanted func(*notes.Note) bool) ([]note, error) {
	list := []note{}
	if at.path == "" {
		return list, nil
	}
	found, err := notes.Read(at.path)
	if err != nil {
		return list, unreadable(err)
	}
	for i := range found {
		n := &found[i]
		if !wanted(n) {
			continue
		}
		one := note{Note: *n, Seal: notes.SealOf(n, s.key())} // before anything is left out of it
		one.Text, one.By = s.clean([]byte(n.Text)), s.clean([]byte(n.By))
		list = append(list, one)
	}
	return list, nil
}

// ofCell returns the notes of a cell, with those that are about an earlier result marked.
func (s *Server) ofCell(at location, of ledger.Cell, attempts []ledger.Record) ([]note, error) {
	list, err := s.notesOf(at, func(n *notes.Note) bool { return n.View == "" && n.Cell() == of })
	for i := range list {
		about := list[i].Record
		list[i].Stale = about != "" &&
			!slices.ContainsFunc(attempts, func(r ledger.Record) bool { return r.Hash == about })
	}
	return list, err
}

// addNote keeps a note, a saved view, or that one of them is removed, with the user's name.
func (s *Server) addNote(r *http.Request, at location) (any, error) {
	var given struct {
		Task    string   `json:"task"`
		Arm     string   `json:"arm"`
		Run     int      `json:"run"`
		Text    string   `json:"text"`
		Tags    []string `json:"tags"`
		View    string   `json:"view"`
		Removes string   `json:"removes"`
	}
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		return nil, badRequest(`want {"task":…,"arm":…,"run":…,"text":…,"tags":[…]}: ` + err.Error())
	}
	n := notes.Note{
		By:      cmp.Or(s.cfg.Author, "unknown"),
		Task:    given.Task,
		Arm:     given.Arm,
		Run:     given.Run,
		Text:    s.clean([]byte(given.Text)),
		Tags:    given.Tags,
		View:    given.View,
		Removes: given.Removes,
	}
	snap := s.snapshot(at)
	if n.Removes == "" && n.View == "" {
		known := snap.byKey[n.Cell()]
		if known == nil {
			return nil, notFound(at.shown+" has no cell "+quote(n.Task+"/"+n.Arm+"/"+strconv.Itoa(n.Run)), "")
		}
		if list := snap.attempts[n.Cell()]; len(list) > 0 {
			n.Record = list[len(list)-1].Hash
		}
	}
	if err := n.Check(); err != nil {
		return nil, badRequest(err.Error())
	}
	if _, err := notes.Add(at.path, n, s.signingKey()); err != nil {
		return nil, conflict("the note cannot be kept: "+err.Error(), "")
	}
	return s.notes(r, at)
}

// key is the user's key; nil if there is none yet.
func (s *Server) key() *ledger.SigningKey { return cmp.Or(s.made.Load(), s.cfg.Key) }

// signingKey is the user's key, which is made on first use.
func (s *Server) signingKey() *ledger.SigningKey {
	if s.key() == nil && s.cfg.NewKey != nil {
		s.made.Store(s.cfg.NewKey())
	}
	return s.key()
}

// annotate adds to cells how many notes and which tags they have.
func annotate(dir string, cells []cell) {
	found, err := notes.Read(dir)
	if err != nil || len(found) == 0 {
		return
	}
	places := map[ledger.Cell]int{}
	for i := range cells {
		places[ledger.Cell{TaskID: cells[i].Task, Arm: cells[i].Arm, RunIndex: cells[i].Run}] = i
	}
	for i := range found {
		at, known := places[found[i].Cell()]
		if !known || found[i].View != "" {
			continue
		}
		c := &cells[at]
		c.Notes++
		for _, tag := range found[i].Tags {
			if !slices.Contains(c.Tags, tag) {
				c.Tags = append(c.Tags, tag)
			}
		}
	}
}
