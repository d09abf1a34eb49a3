package foreign

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// inspectReader reads logs of Inspect: an archive, or one JSON document. A sample is a task, an
// epoch a run, and a model with its solver and arguments an arm.
var inspectReader = reader{format: "inspect", finds: findInspect, read: readInspect}

const (
	// methodZstd is how newer versions compress members.
	methodZstd = 93
	// maxMember bounds what one member unpacks to: a sample with all that its agent did.
	maxMember = 128 << 20
	// maxMembers bounds the members of an archive, maxReserved those for which memory is reserved.
	maxMembers = 2_000_000
	// maxRatio bounds how many times larger an archive may become, from maxUnpacked on: members may
	// share what they unpack.
	maxRatio    = 500
	maxUnpacked = 256 << 20
	maxReserved = 100_000
)

func findInspect(root string, info os.FileInfo) []string {
	if !info.IsDir() {
		if isInspect(root) {
			return []string{root}
		}
		return nil
	}
	var files []string
	for _, file := range filesIn(root) {
		if ext := filepath.Ext(file); (ext == ".eval" || ext == ".json") && isInspect(file) {
			files = append(files, file)
		}
	}
	return files
}

// filesIn lists the regular files of a directory, not those of its sub-directories.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(dir) // what cannot be read has none
	var files []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files
}

var inspectDocument = lazyregexp.New(`^\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:`)

func isInspect(file string) bool {
	head := headOf(file)
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return inspectDocument.Get().Match(head)
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return strings.HasSuffix(file, ".eval") // one that was cut: reading it says so
	}
	defer archive.Close()
	return slices.ContainsFunc(archive.File, func(member *zip.File) bool {
		return member.Name == "header.json" || member.Name == "_journal/start.json"
	})
}

// inspection is a log that is being read.
type inspection struct {
	*source
	log     inspectLog
	arm     string
	start   int              // the first of its records, which are not complete until the scorer is known
	scores  [][]inspectScore // of each
	scorers []string
	samples int
	reduced []inspectReduction
	// packed is the size of the archive, unpacked that of what was read of it.
	packed, unpacked int64

	parser jsontape.Parser
	buffer bytes.Buffer
}

func readInspect(s *source, file string) error {
	in := &inspection{source: s, start: len(s.records)}
	read := in.document
	if bytes.HasPrefix(headOf(file), []byte("PK\x03\x04")) {
		read = in.archive
	}
	if err := read(file); err != nil {
		return err
	}
	return in.finish()
}

// archive reads a log that is an archive.
func (in *inspection) archive(file string) error {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return fmt.Errorf("the archive was cut, or is none: %w", err)
	}
	defer archive.Close()
	if info, err := os.Stat(file); err == nil {
		in.packed = info.Size()
	}
	archive.RegisterDecompressor(zip.Deflate, flate.NewReader)
	archive.RegisterDecompressor(methodZstd, func(packed io.Reader) io.ReadCloser {
		unpacked, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMember),
			zstd.WithDecoderLowmem(true))
		if err != nil {
			return io.NopCloser(failing{err})
		}
		return unpacked.IOReadCloser()
	})
	if len(archive.File) > maxMembers {
		return fmt.Errorf("the archive has more than %d members", maxMembers)
	}
	members := make(map[string]*zip.File, len(archive.File))
	for _, member := range archive.File {
		switch name := member.Name; {
		case members[name] != nil:
			return fmt.Errorf("the member %q is there twice: the log was altered", name)
		case path.IsAbs(name) || strings.Contains(name, `\`) || slices.Contains(strings.Split(name, "/"), ".."):
			return fmt.Errorf("the member %q is outside of the archive: the log was altered", name)
		default:
			members[name] = member
		}
	}
	if err := in.header(members); err != nil {
		return err
	}
	if member := members["reductions.json"]; member != nil {
		text, err := in.unpack(member)
		if err == nil {
			err = decodeJSON(text, &in.reduced)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
	}
	in.records = slices.Grow(in.records, min(len(archive.File), maxReserved)) // growing takes twice the memory
	for _, member := range archive.File {
		if !strings.HasPrefix(member.Name, "samples/") || !strings.HasSuffix(member.Name, ".json") {
			continue
		}
		text, err := in.unpack(member)
		if err == nil {
			err = in.sample(text, member.Name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
	}
	return nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// header reads what holds for the whole log: as it was at its end, or where it was cut, at its
// start.
func (in *inspection) header(members map[string]*zip.File) error {
	name := "header.json"
	if members[name] == nil {
		name = "_journal/start.json"
		in.doubt("the log was cut: the run did not end")
	}
	if members[name] == nil {
		return errors.New("the archive has no header.json: it is no log of Inspect")
	}
	text, err := in.unpack(members[name])
	if err == nil {
		err = decodeJSON(text, &in.log)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// unpack returns a member, until the next is unpacked. What it says of its size is not trusted.
func (in *inspection) unpack(member *zip.File) ([]byte, error) {
	unpacked, err := member.Open()
	if err != nil {
		return nil, err
	}
	defer unpacked.Close()
	if in.buffer.Cap() > maxMember/16 {
		in.buffer = bytes.Buffer{} // a large sample is not kept in memory
	}
	in.buffer.Reset()
	n, err := io.Copy(&in.buffer, io.LimitReader(unpacked, maxMember+1))
	in.unpacked += n
	switch {
	case in.unpacked > maxUnpacked && in.unpacked > maxRatio*in.packed:
		return nil, fmt.Errorf("the archive unpacks to more than %d times its size", maxRatio)
	case n > maxMember:
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxMember)
	case err != nil:
		return nil, err
	}
	return in.buffer.Bytes(), nil
}

// document reads a log that is one JSON document, sample by sample.
func (in *inspection) document(file string) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	whole := map[string]json.RawMessage{}
	err = members(opened, func(name string, decoder *json.Decoder) error {
		switch name {
		case "samples":
		case "reductions":
			return decoder.Decode(&in.reduced)
		default:
			var value json.RawMessage
			err := decoder.Decode(&value)
			whole[name] = value
			return err
		}
		return elements(decoder, func(raw []byte) error {
			return in.sample(raw, fmt.Sprintf("sample %d", in.samples+1))
		})
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(whole)
	if err == nil {
		err = decodeJSON(text, &in.log)
	}
	return err
}

// inspectScore is what one scorer says of a sample.
type inspectScore struct {
	scorer  string
	value   float64
	known   bool // it says something
	decides bool // it can be counted
}

// sample reads a sample. Its scores wait until all scorers are known.
func (in *inspection) sample(text []byte, name string) error {
	sample, ok := in.parser.Parse(text)
	if !ok { // NaN is not JSON, but Python writes it
		clean, err := io.ReadAll(&finite{in: bytes.NewReader(text)})
		if sample, ok = in.parser.Parse(clean); err != nil || !ok {
			return errors.New("it is not JSON")
		}
	}
	if sample.Kind() != jsontape.Object || !sample.Get("id").Exists() {
		return errors.New("it is no sample: it has no id")
	}
	in.samples++
	r := ledger.Record{
		TaskID:         idOf(sample.Get("id")),
		RunIndex:       sample.Get("epoch").Int() - 1,
		AgentTracePath: strings.Clone(in.from.File + ":" + name),
	}
	r.Digests.Visible = contentOf(resolved(sample, "input"), resolved(sample, "choices"), resolved(sample, "target"))
	if r.RunIndex < 0 || r.TaskID == "" {
		return errors.New("it has no id, or no epoch from 1 on")
	}
	in.took(&r, sample)
	var scores []inspectScore
	for scorer, score := range sample.Get("scores").Members() {
		scores = in.scoresOf(scores, scorer, score.Get("value"))
	}
	if message := sample.Path("error", "message").Text(); len(scores) == 0 {
		if plain := sample.Get("error"); message == "" && plain.Kind() == jsontape.String {
			message = plain.Text()
		}
		failed(&r, cmp.Or(strings.Clone(message), "the sample has no score"))
	}
	if what := sample.Get("invalidation"); what.Kind() == jsontape.Object {
		failed(&r, "invalidated")
		in.doubt("some samples were invalidated, and count as missing")
	}
	in.records, in.scores = append(in.records, r), append(in.scores, scores)
	return nil
}

// idOf returns the id of a sample, a number or a text.
func idOf(id jsontape.Value) string {
	if id.Kind() == jsontape.Number {
		return string(id.Raw())
	}
	return strings.Clone(id.Text())
}

// resolved returns a part of a sample as it was: long texts stand among its attachments.
func resolved(sample jsontape.Value, name string) []byte {
	value := sample.Get(name)
	if hash, ok := strings.CutPrefix(value.Text(), "attachment://"); ok {
		value = sample.Path("attachments", hash)
	}
	if value.Kind() == jsontape.Null {
		return nil
	}
	var text bytes.Buffer
	if value.Kind() == jsontape.String || json.Compact(&text, value.Raw()) != nil {
		return bytes.Clone(value.Raw())
	}
	return messageIDs.Get().ReplaceAll(text.Bytes(), nil)
}

// messageIDs are those of messages in an input: they are made anew for every log.
var messageIDs = lazyregexp.New(`"id":"[^"\\]*",?`)

// inspectLimits are our words for the limits of Inspect.
var inspectLimits = map[string]string{
	"message": "max_turns", "turn": "max_turns", "time": "timeout", "working": "timeout", "token": "budget",
	"cost": "budget",
}

// took fills in what a sample took, as far as it says.
func (in *inspection) took(r *ledger.Record, sample jsontape.Value) {
	r.DurationMs = int64(1000 * amount(sample.Get("total_time")))
	if began, err := time.Parse(time.RFC3339, sample.TextOf("started_at")); err == nil {
		r.StartMs = began.UnixMilli()
		r.EndMs = r.StartMs + r.DurationMs
	}
	limit := cmp.Or(sample.Path("limit", "type").Text(), sample.TextOf("limit"))
	if r.Outcome = inspectLimits[limit]; limit != "" {
		r.Notes = append(r.Notes, "ended by a limit: "+strings.Clone(limit))
	}
	for message := range sample.Get("messages").Elements() {
		if message.TextOf("role") == "assistant" {
			r.Turns++
		}
	}
	var cost float64
	models, priced := 0, 0
	for _, usage := range sample.Get("model_usage").Members() {
		if r.Tokens == nil {
			r.Tokens = &ledger.UsageJSON{}
		}
		models++
		r.Tokens.InputTokens += int64(amount(usage.Get("input_tokens")))
		r.Tokens.OutputTokens += int64(amount(usage.Get("output_tokens")))
		r.Tokens.CacheReadTokens += int64(amount(usage.Get("input_tokens_cache_read")))
		r.Tokens.CacheWriteTokens += int64(amount(usage.Get("input_tokens_cache_write")))
		if price := usage.Get("total_cost"); price.Kind() == jsontape.Number {
			priced++
			cost += amount(price)
		}
	}
	if models > 0 && priced == models {
		r.CostUSD = &cost
	}
	if retries := sample.Get("error_retries"); retries.Kind() == jsontape.Array && !retries.Empty() {
		in.doubt("some samples were tried again after errors")
	}
}

// amount is a number that is measured; 0 where it is none.
func amount(value jsontape.Value) float64 {
	if n := value.Float64(); n > 0 && n <= maxAmount {
		return n
	}
	return 0
}

// scoresOf adds the values of a score, by name: a map has one for each of its keys.
func (in *inspection) scoresOf(scores []inspectScore, name string, value jsontape.Value) []inspectScore {
	if value.Kind() == jsontape.Object {
		for key, one := range value.Members() {
			scores = in.scoresOf(scores, name+"/"+key, one)
		}
		return scores
	}
	at := slices.Index(in.scorers, name)
	if at < 0 {
		at = len(in.scorers)
		in.scorers = append(in.scorers, strings.Clone(name))
	}
	score := inspectScore{scorer: in.scorers[at]}
	switch value.Kind() {
	case jsontape.Number:
		score.value = value.Float64()
		score.known = !math.IsNaN(score.value) && !math.IsInf(score.value, 0) // Python writes both
		score.decides = true
	case jsontape.True:
		score.value, score.known, score.decides = 1, true, true
	case jsontape.False:
		score.known, score.decides = true, true
	case jsontape.String:
		score.known = true
		score.value, score.decides = inspectValue(value.Text())
	default: // null, or a list of values
	}
	return append(scores, score)
}

// inspectValue is what a text stands for as a score.
func inspectValue(text string) (value float64, ok bool) {
	switch text {
	case "P":
		return 0.5, true
	case "N":
		return 0, true
	}
	pass, ok := truthOf(text)
	if pass {
		value = 1
	}
	return value, ok
}

// finish says what holds for the whole log, chooses the scorer and adds the samples.
func (in *inspection) finish() error {
	in.name()
	if err := in.ended(); err != nil {
		return err
	}
	series := in.arm + "\x00" + in.log.Eval.Task // logs of one arm and task are repetitions
	first, again := in.tried(in.series[series])
	if again {
		return nil
	}
	scorer := ""
	if len(in.scorers) > 0 {
		var err error
		if scorer, err = in.choose("scorer", slices.Clone(in.scorers)); err != nil {
			return err
		}
	}
	last := 0
	in.prefixes[in.log.Eval.Task+"/"] = true
	for i := range in.scores {
		r := &in.records[in.start+i]
		last = max(last, r.RunIndex+1)
		r.TaskID, r.RunIndex = in.log.Eval.Task+"/"+r.TaskID, first+r.RunIndex
		r.Arm, r.Model.Agent, r.Agent = in.arm, in.log.Eval.Model, in.log.Eval.Solver
		score := inspectScore{}
		if at := slices.IndexFunc(in.scores[i], func(s inspectScore) bool { return s.scorer == scorer }); at >= 0 {
			score = in.scores[i][at]
		}
		switch {
		case r.Verdict == ledger.Error:
		case !score.known:
			failed(r, "the scorer "+scorer+" has not scored the sample")
		case !score.decides:
			return fmt.Errorf("task %s: the value of %s is neither a number nor correct or incorrect", r.TaskID, scorer)
		default:
			if err := in.scored(r, score.value, true); err != nil {
				return err
			}
		}
		if err := in.complete(r); err != nil {
			return err
		}
	}
	in.series[series] = max(in.series[series], first+last)
	return nil
}

// name names the arm: two logs whose models, solvers or arguments differ are two arms.
func (in *inspection) name() {
	eval := &in.log.Eval
	in.arm = cmp.Or(eval.Model, "model not known")
	for _, part := range []string{eval.Solver, argsOf(eval.SolverArgs), argsOf(eval.ModelArgs), argsOf(eval.TaskArgs)} {
		if part != "" {
			in.arm += " " + part
		}
	}
	config := &eval.Config
	var conditions []string
	for _, one := range []struct {
		name string
		raw  json.RawMessage
	}{
		{"task version", eval.TaskVersion},
		{"message limit", config.MessageLimit},
		{"token limit", config.TokenLimit},
		{"time limit", config.TimeLimit},
		{"working limit", config.WorkingLimit},
		{"cost limit", config.CostLimit},
		{"samples", config.Limit},
	} {
		if text := argsOf(one.raw); text != "" {
			conditions = append(conditions, one.name+" "+text)
		}
	}
	in.from.Conditions = strings.Join(conditions, ", ")
}

// argsOf shows arguments; empty where there are none.
func argsOf(raw json.RawMessage) string {
	var shown bytes.Buffer
	if json.Compact(&shown, raw) != nil || slices.Contains([]string{"", "null", "{}"}, shown.String()) {
		return ""
	}
	return strings.ToValidUTF8(shown.String()[:min(shown.Len(), maxShownArgs)], "")
}

// maxShownArgs bounds the arguments in the name of an arm.
const maxShownArgs = 200
