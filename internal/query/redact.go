package query

import "encoding/json"

// Redactor replaces secrets with placeholders. String is for text, JSON for one JSON value.
type Redactor interface {
	String(text string) string
	JSON(value []byte) []byte
}

// asIs redacts nothing.
type asIs struct{}

func (asIs) String(text string) string { return text }
func (asIs) JSON(value []byte) []byte  { return value }

func redactOptional(r Redactor, text *string) *string {
	if text == nil {
		return nil
	}
	return new(r.String(*text))
}

func redactRaw(r Redactor, raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	return r.JSON(raw)
}

// redact removes secrets from an entry before any of it is cut. Ids stay: they connect calls with
// results.
func (t *Entry) redact(r Redactor) *Entry {
	if r == (asIs{}) {
		return t
	}
	t.Subtype, t.Result = redactOptional(r, t.Subtype), redactOptional(r, t.Result)
	t.Data, t.verbatim = redactRaw(r, t.Data), redactRaw(r, t.verbatim)
	for i := range t.Content {
		b := &t.Content[i]
		b.Text, b.Name, b.Command = r.String(b.Text), r.String(b.Name), r.String(b.Command)
		b.Input, b.Raw = redactRaw(r, b.Input), redactRaw(r, b.Raw)
		for j := range b.Paths {
			b.Paths[j] = r.String(b.Paths[j])
		}
	}
	return t
}
