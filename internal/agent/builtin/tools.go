package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/model"
)

// tool is something the model can do. An error is a result too: the model gets its text after the
// tool's own.
type tool struct {
	name        string
	description string
	schema      string
	// repeatable tools may be called again after a crash: they change nothing, or their server
	// knows the call by its id.
	repeatable bool
	run        func(ctx context.Context, call model.ToolCall) (string, error)
}

func declare(tools []tool) []model.Tool {
	declared := make([]model.Tool, len(tools))
	for i, t := range tools {
		declared[i] = model.Tool{Name: t.name, Description: t.description, Schema: json.RawMessage(t.schema)}
	}
	return declared
}

func toolNames(tools []tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.name
	}
	return names
}

// ownTools returns the tools that every session has unless they are taken away.
func ownTools(c *conversation) []tool {
	return []tool{
		{
			name: "Bash",
			description: "Run a shell command in the working directory and see what it prints. It has no terminal " +
				"and no input, and is ended after its timeout.",
			schema: `{"type":"object","properties":{"command":{"type":"string","description":"the command line"},` +
				`"timeout":{"type":"integer","description":"milliseconds, at most 600000; 120000 if not given"}},"required":["command"]}`,
			run: typed(c.bash),
		},
		{
			name:        "Read",
			repeatable:  true,
			description: "Read a text file. Lines come numbered.",
			schema: `{"type":"object","properties":{"file_path":{"type":"string"},"offset":{"type":"integer","description":"first line, counted from 1"},` +
				`"limit":{"type":"integer","description":"how many lines"}},"required":["file_path"]}`,
			run: typed(c.read),
		},
		{
			name:        "Write",
			description: "Write a whole file, replacing it if it exists. Directories are made as needed.",
			schema:      `{"type":"object","properties":{"file_path":{"type":"string"},"content":{"type":"string"}},"required":["file_path","content"]}`,
			run:         typed(c.write),
		},
		{
			name: "Edit",
			description: "Replace a piece of text in a file by another. The old text must occur exactly once unless " +
				"replace_all is set.",
			schema: `{"type":"object","properties":{"file_path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"},` +
				`"replace_all":{"type":"boolean"}},"required":["file_path","old_string","new_string"]}`,
			run: typed(c.edit),
		},
		{
			name:        "Glob",
			repeatable:  true,
			description: "List the files whose path matches a pattern such as **/*.go, newest first.",
			schema:      `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"directory to look in"}},"required":["pattern"]}`,
			run:         typed(c.glob),
		},
		{
			name:        "Grep",
			repeatable:  true,
			description: "Find the lines that match a regular expression (RE2 syntax), as file:line:text.",
			schema: `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"file or directory to look in"},` +
				`"glob":{"type":"string","description":"only files whose path matches"}},"required":["pattern"]}`,
			run: typed(c.grep),
		},
	}
}

// typed turns a function of a struct into a tool's function of JSON.
func typed[Input any](run func(context.Context, Input) (string, error)) func(context.Context, model.ToolCall) (string,
	error) {
	return func(ctx context.Context, call model.ToolCall) (string, error) {
		var input Input
		if err := json.Unmarshal(call.Input, &input); err != nil {
			return "", fmt.Errorf("the input does not fit the tool: %w", err)
		}
		return run(ctx, input)
	}
}

// errOutside is the answer to a model that names a path it may not touch.
var errOutside = errors.New("the path is outside the working directory")

// inside makes a path relative to the working directory. os.Root finds out whether it leaves it
// through a link when it is used.
func (c *conversation) inside(path string) (string, error) {
	if path == "" {
		return ".", nil
	}
	if strings.ContainsRune(path, 0) {
		return "", errOutside
	}
	if filepath.IsAbs(path) {
		rel, err := c.relative(path)
		if err != nil {
			return "", err
		}
		path = rel
	}
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("%w: %s", errOutside, path)
	}
	return path, nil
}

// workdirInside returns the working directory as commands in a container see it; empty outside of
// one.
func (c *conversation) workdirInside() string {
	if c.cfg.Isolation.Container == nil {
		return ""
	}
	return c.cfg.Isolation.Container.Config().Workdir
}

// relative also accepts the resolved form of a working directory that is reached through a link.
func (c *conversation) relative(path string) (string, error) {
	for _, base := range []string{c.cfg.Dir, resolved(c.cfg.Dir), c.workdirInside()} {
		if base == "" {
			continue
		}
		if rel, err := filepath.Rel(base, path); err == nil && filepath.IsLocal(rel) {
			return rel, nil
		}
	}
	return "", fmt.Errorf("%w: %s", errOutside, path)
}

func resolved(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// plainError hides the details of os.Root from the model.
func plainError(path string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", path, pathErr.Err)
	}
	return err
}
