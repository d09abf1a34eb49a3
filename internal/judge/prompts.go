package judge

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
)

//go:embed prompts/*.md
var builtinPrompts embed.FS

// The names of the prompts that all dimensions share.
const (
	promptSingle = "single"
	promptPair   = "pair"
)

// The kinds of questions, as system prompts and replies.jsonl name them.
const (
	kindSingle   = "single"
	kindPair     = "pair"
	kindSelfTest = "self-test" // put to the model as a single question
)

// Prompts are the texts of the questions, by name: "single", "pair" and each dimension.
type Prompts map[string]string

// maxPromptFile bounds a prompt file.
const maxPromptFile = 256 << 10

// LoadPrompts returns the built-in prompts; files NAME.md in a directory replace them. An empty dir
// replaces none.
func LoadPrompts(dir string) (Prompts, error) {
	prompts := Prompts{}
	for _, name := range append([]string{promptSingle, promptPair}, evidence.Dimensions()...) {
		text, err := builtinPrompts.ReadFile("prompts/" + name + ".md")
		if err != nil {
			return nil, fmt.Errorf("built-in prompt %s: %w", name, err)
		}
		prompts[name] = string(text)
	}
	if dir == "" {
		return prompts, nil
	}
	return prompts, prompts.replace(dir)
}

func (p Prompts) replace(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read prompts: %w", err)
	}
	found := false
	for _, entry := range entries {
		name, isPrompt := strings.CutSuffix(entry.Name(), ".md")
		if !isPrompt || name == "README" {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if _, known := p[name]; !known {
			return fmt.Errorf("%s: there is no prompt %q, only %s", path, name,
				strings.Join(slices.Sorted(maps.Keys(p)), ", "))
		}
		text, err := readBounded(path)
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s: the prompt is empty", path)
		}
		p[name], found = text, true
	}
	if !found {
		return fmt.Errorf("%s holds no prompt: want at least one of %s, each as NAME.md", dir,
			strings.Join(slices.Sorted(maps.Keys(p)), ", "))
	}
	return nil
}

func readBounded(path string) (string, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxPromptFile {
		return "", fmt.Errorf("read prompt: %s: larger than 256 KiB", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read prompt: %w", err)
	}
	return string(text), nil
}

// system returns the system prompt of a question. Its first line distinguishes questions in logs
// and scripts.
func (p Prompts) system(kind, dimension string) string {
	frame := promptSingle
	if kind == kindPair || kind == kindSentence {
		frame = kind
	}
	return fmt.Sprintf("fit-judge/1 %s %s\n\n%s\n%s", frame, dimension, p[frame], p[dimension])
}

// frame is a system prompt with what is computed from it once.
type frame struct {
	system string
	hash   string      // identifies the prompt in verdicts and calibrations
	hashed hash.Cloner // the beginning of every key
}

// frames makes the system prompts of questions when they are first needed.
type frames struct {
	prompts Prompts
	made    map[string]*frame
}

func newFrames(prompts Prompts) *frames { return &frames{prompts: prompts, made: map[string]*frame{}} }

func (f *frames) of(kind, dimension string) *frame {
	name := kind + " " + dimension
	if f.made[name] == nil {
		system := f.prompts.system(kind, dimension)
		h := sha256.New()
		hashParts(h, "fit-request/1", system)
		hashed, _ := h.(hash.Cloner)
		f.made[name] = &frame{system: system, hash: digest(system), hashed: hashed}
	}
	return f.made[name]
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
