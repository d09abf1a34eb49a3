package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// serviceName matches names that hosts can have.
var serviceName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// composeServices reads the services beside the agent's, and puts them in the order in which they
// start. Services of a profile are not started.
func (h *harborLoader) composeServices(
	e *Environment, main *composeFile, services, volumes map[string]map[string]json.RawMessage,
) error {
	found := map[string]Service{}
	mounts := slices.Clone(e.Mounts)
	for _, name := range slices.Sorted(maps.Keys(services)) {
		keys := services[name]
		if name == harborService || keys["profiles"] != nil {
			continue
		}
		c := &composeFile{
			doc:     main.doc,
			service: name,
			keys:    keys,
			vars:    main.vars,
		}
		s, err := h.composeService(e, c)
		if err != nil {
			return err
		}
		found[name] = s
		mounts = append(mounts, s.Environment.Mounts...)
	}
	for _, m := range mounts {
		settings, declared := volumes[m.Volume]
		switch {
		case m.Volume == "":
		case !declared:
			return refuse("%w", main.doc.ErrorAt([]string{"services"}, "the volume %s is not declared", m.Volume))
		case settings["external"] != nil || settings["driver_opts"] != nil || settings["driver"] != nil:
			return refuse("%w", main.doc.ErrorAt([]string{"volumes", m.Volume}, "it is not a volume of the task alone"))
		}
	}
	needs, err := main.needs()
	if err != nil {
		return main.wrong("depends_on", err)
	}
	for name := range needs {
		if _, known := found[name]; !known {
			return main.wrong("depends_on", fmt.Errorf("there is no service %s", name))
		}
	}
	if e.Services, err = startOrder(found); err != nil {
		return refuse("%w", main.doc.ErrorAt([]string{"services"}, "%v", err))
	}
	return nil
}

// startOrder returns services with those that others need first.
func startOrder(services map[string]Service) ([]Service, error) {
	var order []Service
	state := map[string]int{} // 1: its needs are being looked at, 2: it is in the order
	var add func(name string) error
	add = func(name string) error {
		s, known := services[name]
		switch {
		case !known:
			return fmt.Errorf("there is no service %s, which another depends on", name)
		case state[name] == 1:
			return fmt.Errorf("service %s depends on itself", name)
		case state[name] == 2:
			return nil
		}
		state[name] = 1
		for _, needed := range slices.Sorted(maps.Keys(s.Needs)) {
			if err := add(needed); err != nil {
				return err
			}
		}
		state[name] = 2
		order = append(order, s)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// composeService reads one service beside the agent's.
func (h *harborLoader) composeService(e *Environment, c *composeFile) (Service, error) {
	s := Service{Name: c.service, Environment: Environment{
		Images:       e.Images,
		Env:          map[string]string{},
		BuildTimeout: e.BuildTimeout,
	}}
	if !serviceName.MatchString(s.Name) {
		return s, refuse("%w", c.doc.ErrorAt([]string{"services", s.Name}, "it is not a name that a host can have"))
	}
	for _, key := range slices.Sorted(maps.Keys(c.keys)) {
		if err := h.serviceKey(&s, c, key); err != nil {
			return s, c.wrong(key, err)
		}
	}
	if s.Environment.Image == "" && s.Environment.Dockerfile == "" {
		return s, refuse("%w", c.doc.ErrorAt([]string{"services", s.Name}, "it has neither an image nor a build"))
	}
	return s, nil
}

// serviceKey applies one key of a service, or refuses it.
func (h *harborLoader) serviceKey(s *Service, c *composeFile, key string) (err error) {
	raw, e := c.keys[key], &s.Environment
	switch key {
	case "image":
		if c.keys["build"] == nil {
			e.Image = e.replaced(c.text(raw))
		}
	case "build":
		return h.serviceBuild(e, c, raw)
	case "environment":
		var plain map[string]string
		plain, s.Secrets, err = c.environment()
		maps.Copy(e.Env, plain)
	case "working_dir":
		e.Workdir = c.text(raw)
	case "user":
		e.User = c.text(raw)
	case "command":
		s.Command, err = c.words(raw)
	case "entrypoint":
		s.Entrypoint, err = c.words(raw)
	case "volumes":
		e.Mounts, err = c.mounts(raw, h)
	case "healthcheck":
		e.Healthcheck, err = c.healthcheck(raw)
	case "depends_on":
		s.Needs, err = c.needs()
	case "deploy":
		err = c.deploy(&s.Limits, raw)
	case "cpus", "mem_limit":
		err = limit(&s.Limits, key, c.text(raw))
	case "container_name", "hostname":
		s.Aliases = append(s.Aliases, c.text(raw))
	case "networks":
		s.Aliases = append(s.Aliases, c.aliases(raw)...)
	case "network_mode":
		if mode := c.text(raw); !slices.Contains([]string{"", "bridge", "default", "service:" + harborService}, mode) {
			err = fmt.Errorf("network %s is not supported", mode)
		}
	default:
		if !slices.Contains(composeIgnored, key) && !strings.HasPrefix(key, "x-") {
			err = errors.New("it is not supported")
		}
	}
	return err
}

// serviceBuild reads the Dockerfile of a service, which is one of the task's.
func (h *harborLoader) serviceBuild(e *Environment, c *composeFile, raw json.RawMessage) error {
	dir, file := "", "Dockerfile"
	if json.Unmarshal(raw, &dir) != nil {
		var build map[string]json.RawMessage
		if err := json.Unmarshal(raw, &build); err != nil {
			return err
		}
		for key, value := range build {
			switch key {
			case "context":
				dir = c.text(value)
			case "dockerfile":
				file = c.text(value)
			case "network", "pull":
			default:
				return fmt.Errorf("%s of a build is not supported", key)
			}
		}
	}
	dir = path.Clean(c.expand(dir))
	dockerfile := path.Join(dir, file)
	if !filepath.IsLocal(dir) || !filepath.IsLocal(dockerfile) || !isFile(h.path(path.Join(harborDir, dockerfile))) {
		return fmt.Errorf("%s is not a file beside the compose file", dockerfile)
	}
	if err := e.buildFrom(h.path(path.Join(harborDir, dockerfile))); err != nil {
		return err
	}
	if e.Context = h.path(path.Join(harborDir, dir)); filepath.Dir(e.Dockerfile) == e.Context {
		return nil
	}
	d := newDigester()
	d.add("file", "dockerfile", []byte(e.Content+" "+file))
	err := d.addDir("context", e.Context, nil)
	e.Content = d.String()
	return err
}

// words returns a command line: a list, or a text that is split as a shell would.
func (c *composeFile) words(raw json.RawMessage) ([]string, error) {
	var words []string
	if json.Unmarshal(raw, &words) == nil {
		for i := range words {
			words[i] = c.expand(words[i])
		}
		return words, nil
	}
	for w, err := range syntax.NewParser().WordsSeq(strings.NewReader(c.text(raw))) {
		if err != nil {
			return nil, err
		}
		var word strings.Builder
		if err := writeWord(&word, w.Parts); err != nil {
			return nil, err
		}
		words = append(words, word.String())
	}
	return words, nil
}

// writeWord writes a word without its quotes.
func writeWord(to *strings.Builder, parts []syntax.WordPart) error {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			to.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
		case *syntax.SglQuoted:
			to.WriteString(part.Value)
		case *syntax.DblQuoted:
			if err := writeWord(to, part.Parts); err != nil {
				return err
			}
		default:
			return errors.New("its text needs a shell: write it as a list")
		}
	}
	return nil
}

// mountLine is the short form of a mount.
var mountLine = lazyregexp.New(`^([^:]+):([^:]+)(?::(\w[\w,]*))?$`)

// ownMount matches the directories that Harbor itself mounts, which the agent's container has.
var ownMount = lazyregexp.New(`^\$\{HOST_(VERIFIER_LOGS|AGENT_LOGS|ARTIFACTS)_PATH\}:[^:]+(:rw)?$`)

// mounts reads volumes of the task, and files beside the compose file. A path alone is a directory
// of the container.
func (c *composeFile) mounts(raw json.RawMessage, h *harborLoader) ([]Mount, error) {
	var volumes []any
	if err := json.Unmarshal(raw, &volumes); err != nil {
		return nil, err
	}
	var mounts []Mount
	for _, volume := range volumes {
		text, short := volume.(string)
		if short && c.service == harborService && ownMount.MatchString(text) {
			continue
		}
		line := c.expand(text)
		if short && strings.HasPrefix(line, "/") && !strings.Contains(line, ":") {
			continue
		}
		match := mountLine.FindStringSubmatch(line)
		if !short || match == nil || !path.IsAbs(match[2]) {
			return nil, fmt.Errorf("a mount of the host (%v)", volume)
		}
		m := Mount{Target: path.Clean(match[2]), ReadOnly: match[3] == "ro"}
		switch {
		case strings.HasPrefix(match[1], "."):
			if filepath.IsLocal(match[1]) {
				m.Source = h.path(path.Join(harborDir, match[1]))
			}
			if m.Source == "" {
				return nil, fmt.Errorf("%s is not a file beside the compose file", match[1])
			}
		case !serviceName.MatchString(match[1]):
			return nil, fmt.Errorf("a mount of the host (%v)", volume)
		default:
			m.Volume = match[1]
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// healthcheck reads the command that says whether the service is ready.
func (c *composeFile) healthcheck(raw json.RawMessage) (*Healthcheck, error) {
	var check struct {
		Test              json.RawMessage
		Disable           bool
		Interval, Timeout string
		StartPeriod       string `json:"start_period"`
		StartInterval     string `json:"start_interval"`
		Retries           *int
	}
	if err := json.Unmarshal(raw, &check); err != nil {
		return nil, err
	}
	h := &Healthcheck{
		Interval:      30 * time.Second,
		Timeout:       30 * time.Second,
		StartInterval: 5 * time.Second,
		Retries:       3,
	}
	for _, d := range []struct {
		text string
		to   *time.Duration
	}{
		{check.Interval, &h.Interval},
		{check.Timeout, &h.Timeout},
		{check.StartPeriod, &h.StartPeriod},
		{check.StartInterval, &h.StartInterval},
	} {
		if d.text == "" {
			continue
		}
		value, err := time.ParseDuration(c.expand(d.text))
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration", d.text)
		}
		*d.to = value
	}
	h.StartInterval = min(h.StartInterval, h.Interval)
	if check.Retries != nil {
		h.Retries = *check.Retries
	}
	var words []string
	if json.Unmarshal(check.Test, &words) != nil {
		words = []string{"CMD-SHELL", c.text(check.Test)}
	}
	for i := range words {
		words[i] = c.expand(words[i])
	}
	switch {
	case check.Disable || len(words) == 1 && words[0] == "NONE":
		return nil, nil //nolint:nilnil // it has none, which is not an error
	case len(words) == 2 && words[0] == "CMD-SHELL":
		h.Argv = []string{"/bin/sh", "-c", words[1]}
	case len(words) > 1 && words[0] == "CMD":
		h.Argv = words[1:]
	default:
		return nil, errors.New("test is not a command: want text, or a list that begins with CMD or CMD-SHELL")
	}
	h.Command = strings.Join(h.Argv, " ")
	return h, nil
}

// needs returns the services that this one depends on, with the conditions.
func (c *composeFile) needs() (map[string]string, error) {
	raw := c.keys["depends_on"]
	if raw == nil {
		return nil, nil
	}
	needs := map[string]string{}
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		for _, name := range list {
			needs[name] = ServiceStarted
		}
		return needs, nil
	}
	var byName map[string]struct{ Condition string }
	if err := json.Unmarshal(raw, &byName); err != nil {
		return nil, errors.New("want the names of services, or conditions by name")
	}
	for name, need := range byName {
		switch need.Condition {
		case "", ServiceStarted:
			needs[name] = ServiceStarted
		case ServiceHealthy, ServiceCompleted:
			needs[name] = need.Condition
		default:
			return nil, fmt.Errorf("condition %q is not supported", need.Condition)
		}
	}
	return needs, nil
}

// aliases returns the further names of a service in its networks.
func (c *composeFile) aliases(raw json.RawMessage) []string {
	var networks map[string]struct{ Aliases []string }
	if json.Unmarshal(raw, &networks) != nil {
		return nil // a list has none
	}
	var aliases []string
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		aliases = append(aliases, networks[name].Aliases...)
	}
	return aliases
}

// Hosts returns the names of the services beside the agent's container.
func (e *Environment) Hosts() []string {
	var names []string
	for _, s := range e.Services {
		names = append(append(names, s.Name), s.Aliases...)
	}
	return names
}

// Serves reports whether an address is that of a service beside the agent's container.
func (e *Environment) Serves(address string) bool {
	at, err := url.Parse(address)
	return err == nil && slices.Contains(e.Hosts(), at.Hostname())
}
