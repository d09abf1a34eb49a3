package benchmarkcli

import "testing"

// Whatever a file of predictions holds, every prediction that is read has a name of its own.
func FuzzPredictions(f *testing.F) {
	f.Add(true, `[{"instance_id":"a","model_patch":"x"},{"instance_id":"b","model_patch":null}]`)
	f.Add(true, `{"a":{"model_patch":"x"},"b":{"instance_id":"b","model_patch":""}}`)
	f.Add(false, `{"instance_id":"a","model_patch":"x"}`+"\n\n"+`{"instance_id":"b","model_patch":1}`)
	f.Fuzz(func(t *testing.T, document bool, text string) {
		r := &predictionReader{name: "p", seen: map[string]int{}}
		read := r.lines
		if document {
			read = r.document
		}
		err := read([]byte(text))
		seen := map[string]bool{}
		for _, p := range r.all {
			if p.InstanceID == "" || seen[p.InstanceID] || p.line < 1 {
				t.Errorf("%+v (%v)", p, err)
			}
			seen[p.InstanceID] = true
		}
	})
}
