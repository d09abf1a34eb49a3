package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/session"
)

// Program says how an agent's program is found and asked for its version.
type Program struct {
	Agent session.AgentID
	Name  string // looked up in PATH
	Hint  string // the command that installs it
	// Oldest is the first version, major and minor, whose flags and protocol are the ones we use.
	Oldest [2]int
	// ReadPaths, if set, says what must be readable in a sandbox, given the program's real path and
	// the environment it was found in; otherwise that path is.
	ReadPaths func(path string, environ []string) []string
	// Login, if set, says what credentials the caller has, for Installation.Login.
	Login func(environ []string) string
}

// versionTimeout is generous: some agents take five seconds to print their version, and more than
// half a minute on a busy machine.
const versionTimeout = 5 * time.Minute

var versionPattern = lazyregexp.New(`\d+\.\d+\.\d+[0-9A-Za-z.+-]*`)

// Find looks for a program of a version that we know how to run.
func (p Program) Find(ctx context.Context, host Host) (Installation, error) {
	found, err := p.locate(ctx, host)
	if err != nil {
		return Installation{}, err
	}
	if err := p.Supports(found.Version); err != nil {
		return Installation{}, err
	}
	if p.Login != nil {
		found.Login = p.Login(host.Environ)
	}
	return found, nil
}

// locate finds the program and its version. The version is remembered by the program's path, size
// and time, because asking for it costs up to a second.
func (p Program) locate(ctx context.Context, host Host) (Installation, error) {
	path := LookPath(host.Environ, p.Name)
	if path == "" {
		return Installation{}, &NotFoundError{Agent: p.Agent, Hint: p.Hint}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Installation{}, fmt.Errorf("find agent %s: %w", p.Agent, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return Installation{}, fmt.Errorf("find agent %s: %w", p.Agent, err)
	}
	found := Installation{Path: path, ReadPaths: []string{real}}
	if p.ReadPaths != nil {
		found.ReadPaths = p.ReadPaths(real, host.Environ)
	}
	key := fmt.Sprintf("%s\n%d\n%d", real, info.Size(), info.ModTime().UnixNano())
	if version, known := recall(host.CacheDir, key); known {
		found.Version = version
		return found, nil
	}
	if found.Version, err = p.askVersion(ctx, path, host); err != nil {
		return Installation{}, err
	}
	remember(host.CacheDir, key, found.Version)
	return found, nil
}

func (p Program) askVersion(ctx context.Context, path string, host Host) (string, error) {
	room, err := scratch.Make("", "fit-probe-")
	if err != nil {
		return "", fmt.Errorf("ask agent %s for its version: %w", p.Agent, err)
	}
	defer func() { _ = room.Remove() }()
	home := room.Path
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: host.Environ, Home: home, TmpDir: home})
	var stdout, stderr bytes.Buffer
	spawner := host.Spawner
	if spawner == nil {
		spawner = sandbox.NewSpawner()
	}
	spec := sandbox.SpawnSpec{
		Argv:      []string{path, "--version"},
		Dir:       home,
		Env:       env.List(),
		Timeout:   versionTimeout,
		MaxOutput: 1 << 20,
	}
	result, err := spawner.Spawn(ctx, spec, &stdout, &stderr)
	if err != nil {
		return "", fmt.Errorf("ask agent %s for its version: %w", p.Agent, err)
	}
	version := VersionIn(stdout.String())
	if version == "" {
		version = versionPattern.Get().FindString(stderr.String())
	}
	switch {
	case version != "": // some print it and then do not exit
	case result.TimedOut:
		return "", fmt.Errorf("agent %s at %s does not report its version within %v: is the installation broken? "+
			"Get it again with: %s", p.Agent, path, versionTimeout, p.Hint)
	default:
		return "", fmt.Errorf("agent %s at %s does not report its version (exit code %d): is the installation broken? "+
			"Get it again with: %s", p.Agent, path,
			result.ExitCode, p.Hint)
	}
	return version, nil
}

// VersionIn finds a version in what a program prints about itself; empty if there is none.
func VersionIn(text string) string { return versionPattern.Get().FindString(text) }

// Ready makes sure that an agent can do what is asked of it. It looks for the agent unless the
// config has its Installation already, and sets that.
func Ready(ctx context.Context, a Agent, cfg *Config) error {
	if err := Check(a, *cfg); err != nil || cfg.Installation != nil {
		return err
	}
	found, err := a.Probe(ctx, Host{Environ: cfg.Environ, Spawner: cfg.Spawner, CacheDir: cfg.CacheDir})
	cfg.Installation = &found
	return err
}

// LookPath finds a program in the PATH of an environment; empty if it is not there.
func LookPath(environ []string, name string) string {
	for _, dir := range filepath.SplitList(Getenv(environ, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// Getenv returns a variable of an environment; the last of two equal names counts.
func Getenv(environ []string, name string) string {
	value := ""
	for _, variable := range environ {
		if n, v, ok := strings.Cut(variable, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// CheckVariable returns an error if the name of an environment variable is not valid.
func CheckVariable(name string) error {
	if name == "" || strings.ContainsAny(name, "= \t\n\x00") {
		return fmt.Errorf("env: %q is not allowed as the name of a variable; write one word, as in MY_KEY", name)
	}
	return nil
}

// remembered is the file in which a version is kept.
type remembered struct {
	Key     string `json:"key"`
	Version string `json:"version"`
}

func cacheFile(dir, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(dir, "agents", hex.EncodeToString(sum[:8])+".json")
}

func recall(dir, key string) (string, bool) {
	if dir == "" {
		return "", false
	}
	data, err := os.ReadFile(cacheFile(dir, key))
	if err != nil {
		return "", false
	}
	var entry remembered
	if json.Unmarshal(data, &entry) != nil || entry.Key != key || entry.Version == "" {
		return "", false
	}
	return entry.Version, true
}

// remember keeps a version. A cache that cannot be written is no reason to fail.
func remember(dir, key, version string) {
	if dir == "" {
		return
	}
	data, err := json.Marshal(remembered{Key: key, Version: version})
	if err != nil {
		return
	}
	file := cacheFile(dir, key)
	if os.MkdirAll(filepath.Dir(file), 0o700) == nil {
		_ = os.WriteFile(file, data, 0o600)
	}
}

// Supports refuses a version that is older than the oldest one we know. A version that cannot be
// read as numbers is an unusual build, and is accepted.
func (p Program) Supports(version string) error {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return nil
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	if errMajor != nil || errMinor != nil || major > p.Oldest[0] || (major == p.Oldest[0] && minor >= p.Oldest[1]) {
		return nil
	}
	return fmt.Errorf("agent %s is version %s, but %d.%d or later is needed; update it with: %s", p.Agent, version,
		p.Oldest[0], p.Oldest[1], p.Hint)
}

// PackagePaths returns the packages that a program of npm consists of, which are beside it or below
// it; otherwise the program itself.
func PackagePaths(real string) []string {
	if at := strings.LastIndex(real, "/node_modules/"); at >= 0 {
		return []string{real[:at+len("/node_modules")]}
	}
	return []string{real}
}

// InterpreterPaths returns the paths of the interpreter of npm's programs.
func InterpreterPaths(environ []string) []string {
	node := LookPath(environ, "node")
	if node == "" {
		return nil
	}
	if target, err := filepath.EvalSymlinks(node); err == nil && target != node {
		return []string{node, target}
	}
	return []string{node}
}
