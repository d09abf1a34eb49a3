package task

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// harborFile is the task.toml of a Harbor task. Keys that are not here are ignored.
type harborFile struct {
	Agent       harborPhase       `toml:"agent"`
	Verifier    harborVerifier    `toml:"verifier"`
	Environment harborEnvironment `toml:"environment"`
	Solution    struct {
		Env map[string]string `toml:"env"`
	} `toml:"solution"`
	Artifacts []any          `toml:"artifacts"` // a path, or a harborArtifact
	Strategy  string         `toml:"multi_step_reward_strategy"`
	Steps     []harborStep   `toml:"steps"`
	Metadata  map[string]any `toml:"metadata"`
	Task      struct {
		Name     string   `toml:"name"`
		Keywords []string `toml:"keywords"`
	} `toml:"task"`

	source []byte // of the file
}

type harborStep struct {
	Name        string             `toml:"name"`
	Agent       harborPhase        `toml:"agent"`
	Verifier    harborVerifier     `toml:"verifier"`
	MinReward   any                `toml:"min_reward"` // a number, or a table of them
	Healthcheck *harborHealthcheck `toml:"healthcheck"`
	Artifacts   []any              `toml:"artifacts"`
}

type harborPhase struct {
	TimeoutSec   *float64 `toml:"timeout_sec"`
	User         any      `toml:"user"`
	NetworkMode  string   `toml:"network_mode"`
	AllowedHosts []string `toml:"allowed_hosts"`
}

type harborVerifier struct {
	harborPhase
	Env         map[string]string  `toml:"env"`
	Mode        string             `toml:"environment_mode"`
	Environment *harborEnvironment `toml:"environment"`
	Collect     []harborCollect    `toml:"collect"`
}

type harborCollect struct {
	Command    string   `toml:"command"`
	Service    string   `toml:"service"`
	TimeoutSec *float64 `toml:"timeout_sec"`
	User       any      `toml:"user"`
}

type harborEnvironment struct {
	BuildTimeoutSec float64            `toml:"build_timeout_sec"`
	DockerImage     string             `toml:"docker_image"`
	OS              string             `toml:"os"`
	CPUs            float64            `toml:"cpus"`
	MemoryMB        float64            `toml:"memory_mb"`
	Memory          string             `toml:"memory"` // the older spelling: "2G"
	StorageMB       float64            `toml:"storage_mb"`
	Storage         string             `toml:"storage"`
	GPUs            int                `toml:"gpus"`
	GPUTypes        []string           `toml:"gpu_types"`
	TPU             any                `toml:"tpu"`
	NetworkMode     string             `toml:"network_mode"`
	AllowInternet   *bool              `toml:"allow_internet"` // the older spelling of network_mode
	AllowedHosts    []string           `toml:"allowed_hosts"`
	Env             map[string]string  `toml:"env"`
	Workdir         string             `toml:"workdir"`
	SkillsDir       string             `toml:"skills_dir"`
	MCPServers      []harborServer     `toml:"mcp_servers"`
	Healthcheck     *harborHealthcheck `toml:"healthcheck"`
}

type harborServer struct {
	Name      string   `toml:"name"`
	Transport string   `toml:"transport"`
	URL       string   `toml:"url"`
	Command   string   `toml:"command"`
	Args      []string `toml:"args"`
}

type harborHealthcheck struct {
	Command          string   `toml:"command"`
	IntervalSec      *float64 `toml:"interval_sec"`
	TimeoutSec       *float64 `toml:"timeout_sec"`
	StartPeriodSec   *float64 `toml:"start_period_sec"`
	StartIntervalSec *float64 `toml:"start_interval_sec"`
	Retries          *int     `toml:"retries"`
}

func (check *harborHealthcheck) settings() *Healthcheck {
	if check == nil {
		return nil
	}
	h := &Healthcheck{
		Command:       check.Command,
		Interval:      harborSeconds(check.IntervalSec, 5*time.Second),
		Timeout:       harborSeconds(check.TimeoutSec, 30*time.Second),
		StartPeriod:   harborSeconds(check.StartPeriodSec, 0),
		StartInterval: harborSeconds(check.StartIntervalSec, 5*time.Second),
		Retries:       3,
	}
	if check.Retries != nil {
		h.Retries = *check.Retries
	}
	return h
}

// lineOf returns the first line of the file that contains a value; 0 if there is none.
func (f *harborFile) lineOf(text string) int {
	for i, line := range strings.Split(string(f.source), "\n") {
		if strings.Contains(line, text) {
			return i + 1
		}
	}
	return 0
}

// lastLineOf returns the last line that sets a key; 0 if there is none.
func (f *harborFile) lastLineOf(key string) int {
	found := 0
	for i, line := range strings.Split(string(f.source), "\n") {
		if name, _, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == key {
			found = i + 1
		}
	}
	return found
}

// parseHarbor reads a task.toml.
func parseHarbor(name string, source []byte) (*harborFile, error) {
	source = bytes.TrimPrefix(source, []byte("\ufeff")) // some editors begin files with it
	file := harborFile{source: source}
	err := toml.Unmarshal(source, &file)
	switch wrong, ok := errors.AsType[*toml.DecodeError](err); {
	case ok:
		line, col := wrong.Position()
		return nil, &document.Error{
			File: name,
			Line: line,
			Col:  col,
			Msg:  harborProblem(wrong, source, line),
		}
	case err != nil:
		problem := strings.TrimPrefix(err.Error(), "toml: ")
		key, _, _ := strings.Cut(strings.TrimPrefix(problem, "key "), " ")
		return nil, &document.Error{File: name, Line: file.lastLineOf(key), Msg: problem}
	}
	return &file, nil
}

var (
	harborWrongType = lazyregexp.New(`^toml: cannot decode TOML (\w+) into .* of type (\S+)$`)
	harborTypes     = map[string]string{
		"float64": "a number", "int": "a whole number", "string": "text", "bool": "true or false",
		"[]string":          "a list of texts",
		"map[string]string": "a table of texts",
	}
)

// harborProblem describes an error in the terms of the file.
func harborProblem(wrong *toml.DecodeError, source []byte, line int) string {
	match := harborWrongType.FindStringSubmatch(wrong.Error())
	if match == nil {
		return strings.TrimPrefix(wrong.Error(), "toml: ")
	}
	want := cmp.Or(harborTypes[strings.TrimLeft(match[2], "*")], "a table or a list")
	key, _, _ := strings.Cut(strings.Split(string(source), "\n")[line-1], "=")
	return fmt.Sprintf("%s: want %s, not this %s", strings.TrimSpace(key), want, match[1])
}

// harborSeconds returns a time in seconds, or the default.
func harborSeconds(seconds *float64, byDefault time.Duration) time.Duration {
	if seconds == nil || *seconds <= 0 || math.IsNaN(*seconds) || *seconds > 1e8 {
		return byDefault
	}
	return time.Duration(*seconds * float64(time.Second))
}

// harborUser returns a user: a name or a number.
func harborUser(user any) string {
	if user == nil {
		return ""
	}
	return fmt.Sprint(user)
}

var harborSize = lazyregexp.New(`(?i)^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*$`)

// harborMB returns a size in megabytes, in the new or in the old spelling; both must agree.
func harborMB(key string, mb float64, old string) (int, error) {
	if old == "" {
		return int(mb), nil
	}
	match := harborSize.FindStringSubmatch(old)
	if match == nil {
		return 0, fmt.Errorf("%s = %q is not a size such as 2G", key, old)
	}
	number, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		return 0, fmt.Errorf("%s = %q is not a size such as 2G", key, old)
	}
	number *= map[string]float64{
		"": 1.0 / (1 << 20), "k": 1.0 / (1 << 10), "m": 1, "g": 1 << 10, "t": 1 << 20,
	}[strings.ToLower(match[2])]
	if mb != 0 && mb != number {
		return 0, fmt.Errorf("%s = %q and %s_mb = %v do not agree", key, old, key, mb)
	}
	return int(number), nil
}
