package treatment

import (
	"bytes"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/ledger"
)

// served lists the models that answered, in the order in which they first did. A reply that does
// not name its model is not counted.
func (r *reader) served() []ledger.Served {
	var list []ledger.Served
	for _, call := range r.own {
		if !reached(call) {
			continue
		}
		model := call.Served
		if body, err := r.record.Body(call.Response); model == "" && err == nil {
			model = r.answering(body)
		}
		if model == "" {
			continue
		}
		known := false
		for i := range list {
			if list[i].Model == model && list[i].Asked == call.Model {
				list[i].Calls++
				known = true
			}
		}
		if !known {
			list = append(list, ledger.Served{Model: model, Asked: call.Model, Calls: 1})
		}
	}
	return list
}

// answering returns the model that a reply names: a document, or a stream of events.
func (r *reader) answering(body []byte) string {
	if begin := bytes.TrimLeft(body, " \r\n\t"); bytes.HasPrefix(begin, []byte("{")) {
		return r.namedIn(begin)
	}
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		body = rest
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if model := r.namedIn(bytes.TrimSpace(data)); model != "" {
				return model
			}
		}
	}
	return ""
}

// namedIn returns the model that a document names, by the names of all protocols.
func (r *reader) namedIn(document []byte) string {
	if !bytes.Contains(document, []byte(`"model`)) {
		return ""
	}
	value, _ := r.parser.Parse(document)
	for _, at := range []jsontape.Value{value, value.Get("message"), value.Get("response")} {
		for _, key := range []string{"model", "modelVersion"} {
			if model := at.TextOf(key); model != "" {
				return strings.Clone(model)
			}
		}
	}
	return ""
}
