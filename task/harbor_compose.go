package task

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/document"
)

// composeName is the file that Harbor merges over its own; others of the kind are ignored.
const composeName = "docker-compose.yaml"

// composeKeys are the keys of the service main that have a meaning for one container, or none that
// matters to it.
var composeKeys = []string{
	"build", "image", "environment", "working_dir", "user", "command", "init", "tty", "stdin_open", "pull_policy",
	"deploy", "cpus", "mem_limit", "restart", "container_name", "volumes", "stop_grace_period",
}

// compose reads docker-compose.yaml, as far as it is about the one service of the agent. More
// services, host mounts and devices are refused.
func (h *harborLoader) compose(e *Environment) error {
	name := path.Join(h.rel, harborDir, composeName)
	source, err := os.ReadFile(h.path(path.Join(harborDir, composeName)))
	if os.IsNotExist(err) {
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
	}
	if err := json.Unmarshal(content, &file); err != nil {
		return doc.ErrorAt([]string{"services"}, "want services by name: %v", err)
	}
	for _, service := range slices.Sorted(maps.Keys(file.Services)) {
		if service != harborService {
			return refuse("%w", doc.ErrorAt([]string{"services", service},
				"there is more than the one service %s; several services are not run", harborService))
		}
	}
	main := file.Services[harborService]
	for _, key := range slices.Sorted(maps.Keys(main)) {
		if !slices.Contains(composeKeys, key) {
			return refuse("%w", doc.ErrorAt([]string{"services", harborService, key}, "it is not supported"))
		}
	}
	if err := composeVolumes(main["volumes"]); err != nil {
		return refuse("%w", doc.ErrorAt([]string{"services", harborService, "volumes"}, "%v", err))
	}
	return h.composeEnvironment(e, main)
}

// composeVolumes allows the folders that Harbor itself mounts, which are there anyway.
func composeVolumes(raw json.RawMessage) error {
	var volumes []any
	if raw == nil || json.Unmarshal(raw, &volumes) != nil {
		return nil
	}
	for _, volume := range volumes {
		text, ok := volume.(string)
		if ok && strings.HasPrefix(text, "${HOST_") {
			continue
		}
		return fmt.Errorf("a mount of the host (%v)", volume)
	}
	return nil
}

func (h *harborLoader) composeEnvironment(e *Environment, main map[string]json.RawMessage) error {
	variables := map[string]string{}
	var list []string
	var byName map[string]any
	if json.Unmarshal(main["environment"], &list) == nil {
		for _, pair := range list {
			name, value, _ := strings.Cut(pair, "=")
			variables[name] = value
		}
	} else if json.Unmarshal(main["environment"], &byName) == nil {
		for name, value := range byName {
			if variables[name] = ""; value != nil {
				variables[name] = fmt.Sprint(value)
			}
		}
	}
	for name, value := range variables {
		filled, err := harborValue(value, h.env)
		if err != nil {
			return refuse("%s: environment: %w", composeName, err)
		}
		e.Env[name] = filled
	}
	var image, workdir string
	_ = json.Unmarshal(main["image"], &image)
	_ = json.Unmarshal(main["working_dir"], &workdir)
	if image != "" && !strings.Contains(image, "${") && e.Image == "" && main["build"] == nil {
		e.Image = image
	}
	e.Workdir = first(e.Workdir, workdir)
	return nil
}
