package task

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// composeName is the file that Harbor merges over its own; others of the kind are ignored.
const composeName = "docker-compose.yaml"

// composeFile reads one service of docker-compose.yaml. It refuses mounts of the host, devices and
// anything else that our containers do not have.
type composeFile struct {
	doc     *document.Document
	service string
	keys    map[string]json.RawMessage
	vars    map[string]string // that its values may name
}

// wrong refuses the task because of a key of the service.
func (c *composeFile) wrong(key string, problem error) error {
	return refuse("%w", c.doc.ErrorAt([]string{"services", c.service, key}, "%v", problem))
}

// composeNames are the variables that Harbor itself gives to the file.
var composeNames = map[string]string{
	"TEST_DIR": "/tests", "ENV_VERIFIER_LOGS_PATH": "/logs/verifier", "ENV_AGENT_LOGS_PATH": "/logs/agent",
	"ENV_ARTIFACTS_PATH": "/logs/artifacts", "NETWORK_MODE": "bridge",
}

// composeIgnored are the keys of the service that mean nothing to a container that fit starts.
var composeIgnored = []string{
	"init", "tty", "stdin_open", "pull_policy", "restart", "container_name", "stop_grace_period", "expose", "ports",
	"hostname", "labels", "logging", "networks", "tmpfs", "depends_on",
}

func (h *harborLoader) compose(t *Task, e *Environment) error {
	name := path.Join(h.rel, harborDir, composeName)
	source, err := h.read(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	doc, err := document.Parse(name, source)
	if err != nil {
		return err
	}
	content, err := doc.JSON()
	if err != nil {
		return err
	}
	var file struct {
		Services map[string]map[string]json.RawMessage `json:"services"`
		Volumes  map[string]map[string]json.RawMessage `json:"volumes"`
		Include  json.RawMessage                       `json:"include"`
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return doc.ErrorAt([]string{"services"}, "want services by name: %v", err)
	}
	if file.Include != nil {
		return refuse("%w", doc.ErrorAt([]string{"include"}, "other files are not included"))
	}
	c := &composeFile{
		doc:     doc,
		service: harborService,
		keys:    file.Services[harborService],
		vars:    maps.Clone(composeNames),
	}
	maps.Copy(c.vars, h.env)
	for _, key := range slices.Sorted(maps.Keys(c.keys)) {
		if err := h.composeKey(t, e, c, key); err != nil {
			return err
		}
	}
	return h.composeServices(e, c, file.Services, file.Volumes)
}

// composeKey applies one key of the service, or refuses it.
func (h *harborLoader) composeKey(t *Task, e *Environment, c *composeFile, key string) error {
	raw := c.keys[key]
	var problem error
	switch key {
	case "build":
		problem = c.build(raw)
	case "image":
		if image := c.text(raw); image != "" && e.Image == "" && c.keys["build"] == nil {
			e.Image = image
		}
	case "environment":
		return h.composeEnvironment(t, e, c)
	case "working_dir":
		e.Workdir = cmp.Or(e.Workdir, c.text(raw))
	case "user":
		e.User = cmp.Or(e.User, c.text(raw))
	case "command":
		problem = c.command(raw)
	case "volumes":
		e.Mounts, problem = c.mounts(raw, h)
	case "network_mode":
		problem = h.composeNetwork(t, c.text(raw))
	case "deploy":
		problem = c.deploy(&t.Settings.Limits, raw)
	case "healthcheck":
		e.Healthcheck, problem = c.healthcheck(raw)
	case "cpus", "mem_limit":
		problem = limit(&t.Settings.Limits, key, c.text(raw))
	default:
		if !slices.Contains(composeIgnored, key) && !strings.HasPrefix(key, "x-") {
			problem = errors.New("it is not supported")
		}
	}
	if problem != nil {
		return c.wrong(key, problem)
	}
	return nil
}

var composeVariable = lazyregexp.New(`\$(?:\$|\{([A-Za-z_]\w*)(:?-([^}]*))?\}|([A-Za-z_]\w*))`)

// expand fills in variables: those that are not set are empty.
func (c *composeFile) expand(text string) string {
	return composeVariable.Get().ReplaceAllStringFunc(text, func(found string) string {
		match := composeVariable.FindStringSubmatch(found)
		if found == "$$" {
			return "$"
		}
		value, set := c.vars[match[1]+match[4]]
		if !set || value == "" && strings.HasPrefix(match[2], ":") {
			return match[3]
		}
		return value
	})
}

// text returns a value as text.
func (c *composeFile) text(raw json.RawMessage) string {
	var value string
	if json.Unmarshal(raw, &value) != nil { // a number is written as it is
		value = string(raw)
	}
	return c.expand(value)
}

// build accepts only what is built anyway: the Dockerfile beside the file.
func (c *composeFile) build(raw json.RawMessage) error {
	var dir string
	if json.Unmarshal(raw, &dir) == nil {
		raw = json.RawMessage(`{}`)
	}
	var build map[string]json.RawMessage
	if err := json.Unmarshal(raw, &build); err != nil {
		return err
	}
	for key, value := range build {
		switch {
		case key == "context" && slices.Contains([]string{"", ".", "./"}, c.text(value)):
		case key == "dockerfile" && slices.Contains([]string{"Dockerfile", "./Dockerfile"}, c.text(value)):
		case key == "network" || key == "pull":
		default:
			return fmt.Errorf("%s of a build is not supported", key)
		}
	}
	if dir = c.expand(dir); dir != "" && path.Clean(dir) != "." {
		return fmt.Errorf("it builds in %s, not in the directory of the file", dir)
	}
	return nil
}

// command accepts the commands that only wait.
func (c *composeFile) command(raw json.RawMessage) error {
	var words []string
	if json.Unmarshal(raw, &words) != nil {
		words = []string{c.text(raw)}
	}
	line := c.expand(strings.Join(words, " "))
	for _, shell := range []string{"sh -c ", "bash -c ", "/bin/sh -c ", "/bin/bash -c "} {
		line = strings.TrimPrefix(line, shell)
	}
	line = strings.Trim(line, `"'`)
	if line == "" || strings.HasPrefix(line, "sleep ") || line == "tail -f /dev/null" {
		return nil
	}
	return fmt.Errorf("its command does more than wait (%s): start it in the ENTRYPOINT of the image", line)
}

func (h *harborLoader) composeNetwork(t *Task, mode string) error {
	switch mode {
	case "", "bridge", "default":
		return nil
	case "none":
		t.Settings.AgentNetwork = AgentNetwork{Kind: networkModel, Required: true}
		t.Settings.GraderNetwork = false
		return nil
	}
	return fmt.Errorf("network %s is not supported", mode)
}

// deploy reads limits. Anything else is refused, including GPUs.
func (c *composeFile) deploy(limits *Limits, raw json.RawMessage) error {
	var deploy map[string]map[string]map[string]json.RawMessage
	if err := json.Unmarshal(raw, &deploy); err != nil {
		return err
	}
	for key, resources := range deploy {
		for kind, values := range resources {
			for name, value := range values {
				if key != "resources" || name != "cpus" && name != "memory" {
					return fmt.Errorf("%s.%s.%s is not supported", key, kind, name)
				}
				if kind != "limits" {
					continue
				}
				if err := limit(limits, name, c.text(value)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// limit sets a limit that is still open.
func limit(limits *Limits, name, value string) error {
	switch {
	case value == "":
	case name == "cpus":
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("cpus = %q is not a number", value)
		}
		limits.CPUs = cmp.Or(limits.CPUs, number)
	default:
		megabytes, err := harborMB(name, 0, value)
		if err != nil {
			return err
		}
		limits.MemoryMB = cmp.Or(limits.MemoryMB, megabytes)
	}
	return nil
}

func (h *harborLoader) composeEnvironment(t *Task, e *Environment, c *composeFile) error {
	plain, secret, err := c.environment()
	if err == nil {
		h.give(t, e, plain, secret)
	}
	return err
}

// environment returns the variables of the service. Secret values are returned separately.
func (c *composeFile) environment() (plain, secret map[string]string, err error) {
	variables := map[string]string{}
	var list []string
	var byName map[string]json.RawMessage
	raw := c.keys["environment"]
	if raw == nil {
		return nil, nil, nil
	}
	if json.Unmarshal(raw, &list) == nil {
		for _, pair := range list {
			name, value, given := strings.Cut(pair, "=")
			if !given {
				value = "${" + name + "}"
			}
			variables[name] = value
		}
	} else if json.Unmarshal(raw, &byName) == nil {
		for name, value := range byName {
			if variables[name] = c.text(value); string(value) == "null" {
				variables[name] = "${" + name + "}"
			}
		}
	} else {
		return nil, nil, c.doc.ErrorAt([]string{"services", c.service, "environment"},
			"want variables by name, or a list of NAME=value")
	}
	plain, secret = map[string]string{}, map[string]string{}
	for name, value := range variables {
		filled := c.expand(value)
		if looksLikeCredential(name) && len(filled) >= minSecretLength {
			secret[name] = filled
		} else {
			plain[name] = filled
		}
	}
	return plain, secret, nil
}
