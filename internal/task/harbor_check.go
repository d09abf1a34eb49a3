package task

import "path"

// check refuses invalid values of task.toml.
func (h *harborLoader) check() error {
	file := h.file
	type table struct {
		name  string
		phase harborPhase
	}
	tables := []table{{"agent", file.Agent}, {"verifier", file.Verifier.harborPhase}}
	collects := file.Verifier.Collect
	names := map[string]bool{}
	for i := range file.Steps {
		step := &file.Steps[i]
		if names[step.Name] {
			return h.wrong("[[steps]]", "two steps have the name %q: each needs a directory of its own", step.Name)
		}
		names[step.Name] = true
		tables = append(tables, table{"steps.agent", step.Agent}, table{"steps.verifier", step.Verifier.harborPhase})
		if err := h.checkHealth("steps.healthcheck", step.Healthcheck); err != nil {
			return err
		}
		collects = append(collects[:len(collects):len(collects)], step.Verifier.Collect...)
	}
	for _, table := range tables {
		if limit := table.phase.TimeoutSec; limit != nil && !(*limit > 0) {
			return h.wrong("timeout_sec", "%s.timeout_sec = %v is not a time", table.name, *limit)
		}
		if err := h.checkUser(table.name, table.phase.User); err != nil {
			return err
		}
	}
	for _, collect := range collects {
		if collect.Command == "" {
			return h.wrong("collect", "verifier.collect: the command is missing")
		}
		if err := h.checkUser("verifier.collect", collect.User); err != nil {
			return err
		}
	}
	if err := h.checkHealth("environment.healthcheck", file.Environment.Healthcheck); err != nil {
		return err
	}
	if own := file.Verifier.Environment; own != nil {
		if err := h.checkEnvironment("verifier.environment", own); err != nil {
			return err
		}
	}
	return h.checkEnvironment("environment", &file.Environment)
}

func (h *harborLoader) checkUser(table string, user any) error {
	switch user := user.(type) {
	case nil, string:
		return nil
	case int64:
		if user >= 0 {
			return nil
		}
	}
	return h.wrong("user", "%s.user is neither a name nor a number", table)
}

func (h *harborLoader) checkHealth(table string, check *harborHealthcheck) error {
	switch {
	case check == nil:
	case check.Command == "":
		return h.wrong("healthcheck", "%s: the command is missing", table)
	case check.Retries != nil && *check.Retries < 1:
		return h.wrong("retries", "%s.retries = %d: it is tried at least once", table, *check.Retries)
	}
	return nil
}

func (h *harborLoader) checkEnvironment(table string, e *harborEnvironment) error {
	for _, size := range []struct {
		key   string
		value float64
	}{
		{"cpus", e.CPUs},
		{"memory_mb", e.MemoryMB},
		{"storage_mb", e.StorageMB},
		{"build_timeout_sec", e.BuildTimeoutSec},
	} {
		if !(size.value >= 0 && size.value < maxHarborSize) {
			return h.wrong(size.key, "%s.%s = %v is not an amount that a machine can "+
				"have", table, size.key, size.value)
		}
	}
	if e.Workdir != "" && !path.IsAbs(e.Workdir) {
		return h.wrong("workdir", "%s.workdir = %q is not an absolute path", table, e.Workdir)
	}
	return nil
}

// maxHarborSize bounds amounts: of megabytes, processors and seconds.
const maxHarborSize = 1e8
