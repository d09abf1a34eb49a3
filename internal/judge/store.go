package judge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/jsontape"
)

// repliesFile is the file of a run directory that holds the replies.
const repliesFile = "replies.jsonl"

// maxReplyLine bounds a line of replies.jsonl.
const maxReplyLine = 16 << 20

// The kinds of lines of replies.jsonl.
const (
	lineReply    = "reply"
	lineSettings = "settings"
)

// storedReply is one line of replies.jsonl: a model's reply to one exact request.
type storedReply struct {
	Kind string `json:"kind"`
	// Key is the SHA-256 of the exact request.
	Key      string `json:"key"`
	Member   string `json:"member"`
	Protocol string `json:"protocol"`
	Model    string `json:"model"`
	// Question is single, pair or self-test; About names what it is about, for people.
	Question  string `json:"question"`
	Dimension string `json:"dimension"`
	About     string `json:"about"`
	Reply     string `json:"reply"`
	Stop      string `json:"stop,omitempty"`
	// Failure says why there will never be a reply: the model refused, or the question is too long
	// for it.
	Failure  string    `json:"failure,omitempty"`
	Usage    UsageJSON `json:"usage"`
	CostUSD  *float64  `json:"costUsd"` // nil is unknown
	StartMs  int64     `json:"startMs"`
	EndMs    int64     `json:"endMs"`
	Attempts int       `json:"attempts,omitempty"`
}

// UsageJSON is a token usage in the spelling of replies.
type UsageJSON struct {
	InputTokens          int64    `json:"input_tokens"`
	OutputTokens         int64    `json:"output_tokens"`
	CacheReadTokens      int64    `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens     int64    `json:"cache_write_tokens,omitempty"`
	CacheWriteLongTokens int64    `json:"cache_write_1h_tokens,omitempty"`
	ReasoningTokens      int64    `json:"reasoning_tokens,omitempty"`
	TotalTokens          int64    `json:"-"`
	CostUSD              *float64 `json:"-"`
	CostSource           string   `json:"-"`
	Partial              bool     `json:"-"`
	Summed               bool     `json:"-"`
}

// Settings says which members are asked about what. They are kept beside the replies, so that a
// report needs neither flags nor files.
type Settings struct {
	Panel   Panel   `json:"panel"`
	Prompts Prompts `json:"prompts"`
	// Dimensions are those asked about.
	Dimensions []string `json:"dimensions"`
	Mode       string   `json:"mode"`     // Auto or All
	Pairwise   string   `json:"pairwise"` // PairsOff, PairsTies or PairsAll
	SelfTest   bool     `json:"selfTest"`
	// SameFamily says that members of the family of a model under test were allowed.
	SameFamily bool `json:"sameFamily,omitempty"`
	// Sentences says that the members are asked about sentences, and not about dimensions.
	Sentences bool `json:"sentences,omitempty"`
}

// settingsLine is a line of replies.jsonl.
type settingsLine struct {
	Kind string `json:"kind"`
	Settings
	AtMs int64 `json:"atMs"`
}

// Replies is what replies.jsonl holds.
type Replies struct {
	// Unreadable counts lines that are not records, such as one torn by a crash.
	Unreadable int

	list     []*storedReply
	byKey    map[string]*storedReply
	words    map[string]string // that many lines share
	settings []settingsLine
	newestMs int64
}

// Read reads the replies of a run directory; a directory without any has none. It takes no lock.
func Read(dir string) (*Replies, error) {
	file, err := os.Open(filepath.Join(dir, repliesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return &Replies{byKey: map[string]*storedReply{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read replies: %w", err)
	}
	defer func() { _ = file.Close() }()
	return readReplies(file)
}

func readReplies(r io.Reader) (*Replies, error) {
	replies := &Replies{byKey: map[string]*storedReply{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxReplyLine)
	var parser jsontape.Parser
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 && !replies.line(&parser, line) {
			replies.Unreadable++
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", repliesFile, err)
	}
	return replies, nil
}

// line reads a line and reports whether it is a record.
func (r *Replies) line(parser *jsontape.Parser, line []byte) bool {
	value, ok := parser.Parse(line)
	if !ok {
		return false
	}
	switch value.TextOf("kind") {
	case lineReply:
		reply := r.replyOf(value)
		if reply.Key == "" {
			return false
		}
		r.add(&reply)
	case lineSettings:
		var settings settingsLine
		if json.Unmarshal(line, &settings) != nil {
			return false
		}
		r.settings = append(r.settings, settings)
		r.newestMs = max(r.newestMs, settings.AtMs)
	default:
		return false
	}
	return true
}

// replyOf reads a reply. There are tens of thousands in a directory, and a report reads all.
func (r *Replies) replyOf(value jsontape.Value) storedReply {
	text := func(name string) string { return strings.Clone(value.TextOf(name)) }
	word := func(name string) string { // one of few
		found := value.TextOf(name)
		known, ok := r.words[found]
		if !ok {
			if r.words == nil {
				r.words = map[string]string{}
			}
			known = strings.Clone(found)
			r.words[known] = known
		}
		return known
	}
	usage := value.Get("usage")
	reply := storedReply{
		Kind:      lineReply,
		Key:       text("key"),
		Member:    word("member"),
		Protocol:  word("protocol"),
		Model:     word("model"),
		Question:  word("question"),
		Dimension: word("dimension"),
		About:     text("about"),
		Reply:     text("reply"),
		Stop:      word("stop"),
		Failure:   text("failure"),
		Usage: UsageJSON{
			InputTokens:          usage.Get("input_tokens").Int64(),
			OutputTokens:         usage.Get("output_tokens").Int64(),
			CacheReadTokens:      usage.Get("cache_read_tokens").Int64(),
			CacheWriteTokens:     usage.Get("cache_write_tokens").Int64(),
			CacheWriteLongTokens: usage.Get("cache_write_1h_tokens").Int64(),
			ReasoningTokens:      usage.Get("reasoning_tokens").Int64(),
		},
		StartMs:  value.Get("startMs").Int64(),
		EndMs:    value.Get("endMs").Int64(),
		Attempts: value.Get("attempts").Int(),
	}
	if cost := value.Get("costUsd"); cost.Kind() == jsontape.Number {
		usd := cost.Float64()
		reply.CostUSD = &usd
	}
	return reply
}

// add adds a reply; of several to one request the first counts.
func (r *Replies) add(reply *storedReply) {
	r.newestMs = max(r.newestMs, reply.EndMs)
	if _, known := r.byKey[reply.Key]; known {
		return
	}
	r.byKey[reply.Key] = reply
	r.list = append(r.list, reply)
}

func (r *Replies) find(key string) (*storedReply, bool) {
	reply, ok := r.byKey[key]
	return reply, ok
}

// Settings returns those of the last judging.
func (r *Replies) Settings() (Settings, bool) {
	if len(r.settings) == 0 {
		return Settings{}, false
	}
	return r.settings[len(r.settings)-1].Settings, true
}

// NewestMs returns the time of the newest record; 0 if there is none.
func (r *Replies) NewestMs() int64 { return r.newestMs }

// Store is replies.jsonl opened for asking. It is locked until Close.
type Store struct {
	file *os.File

	mu      sync.Mutex
	replies *Replies
}

// Open locks and reads the replies of a run directory.
func Open(dir string) (*Store, error) {
	path := filepath.Join(dir, repliesFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open replies: %w", err)
	}
	err = jsonlines.Lock(file)
	var replies *Replies
	if err == nil {
		replies, err = readReplies(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Store{file: file, replies: replies}, nil
}

// Close gives the lock back.
func (s *Store) Close() error { return s.file.Close() }

// Replies returns what the store holds. It must not be used while Ask runs.
func (s *Store) Replies() *Replies { return s.replies }

func (s *Store) find(key string) (*storedReply, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replies.find(key)
}

func (s *Store) add(reply storedReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies.add(&reply)
}

// note stores the settings, unless they are those of the last time.
func (s *Store) note(settings Settings, nowMs int64) error {
	if last, ok := s.replies.Settings(); ok && reflect.DeepEqual(last, settings) {
		return nil
	}
	line := settingsLine{Kind: lineSettings, Settings: settings, AtMs: nowMs}
	data, err := jsonenc.Marshal(line)
	if err == nil {
		err = jsonlines.Append(s.file, data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", repliesFile, err)
	}
	s.replies.settings = append(s.replies.settings, line)
	s.replies.newestMs = max(s.replies.newestMs, nowMs)
	return nil
}
