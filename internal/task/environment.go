package task

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Environment is the container that the processes of a task run in.
type Environment struct {
	// Image is the image to run. It wins over Dockerfile.
	Image string `json:",omitempty"`
	// Dockerfile, if set, is built in the directory Context; both are absolute. Content identifies
	// what they hold, and names the image that is built.
	Dockerfile string `json:"-"`
	Context    string `json:"-"`
	Content    string `json:",omitempty"`
	// Images replaces images with others, in FROM lines too.
	Images map[string]string `json:",omitempty"`
	// Workdir is the path of the working directory in the container. Empty: the image's own, or
	// /workspace where that is the root. The agent finds what the image has there.
	Workdir string `json:",omitempty"`
	// User is the agent's; empty: the image's.
	User string            `json:",omitempty"`
	Env  map[string]string `json:",omitempty"` // of every process, beside the image's own
	// KeepEntrypoint runs the image's entry point for as long as the container lives.
	KeepEntrypoint bool `json:",omitempty"`
	// KeepRunning keeps processes that the agent leaves running alive until the verifier, which
	// runs in the same container, is done.
	KeepRunning  bool          `json:",omitempty"`
	BuildTimeout time.Duration `json:",omitempty"` // 0: ten minutes
	Healthcheck  *Healthcheck  `json:",omitempty"`
	// Servers are tool servers of the agent, and Skills a directory of the image whose skills it
	// finds in its working directory.
	Servers []ToolServer `json:",omitempty"`
	Skills  string       `json:",omitempty"`
	// Services run beside the container, in the order in which they start, and Mounts are what it
	// shares with them.
	Services []Service `json:",omitempty"`
	Mounts   []Mount   `json:",omitempty"`
}

// Service is a container beside that of the agent. All containers of a task have one network, in
// which the names of the services are those of its loopback.
type Service struct {
	Name    string
	Aliases []string `json:",omitempty"`
	// Environment is what it is made from. Its healthcheck must succeed before the agent starts.
	Environment Environment
	// Entrypoint and Command replace those of the image where they are set.
	Entrypoint []string          `json:",omitempty"`
	Command    []string          `json:",omitempty"`
	Secrets    map[string]string `json:"-"` // variables that no record may have
	// Needs are the services that start before it, and what it waits for; see the conditions.
	Needs  map[string]string `json:",omitempty"`
	Limits Limits
}

// The conditions under which a service that needs another is started.
const (
	ServiceStarted   = "service_started"
	ServiceHealthy   = "service_healthy"
	ServiceCompleted = "service_completed_successfully"
)

// Mount is a directory or file that a container shows at Target: a volume that the containers of a
// task share, by its name, or a copy of a file of the task.
type Mount struct {
	Volume   string `json:",omitempty"`
	Source   string `json:"-"`
	Target   string
	ReadOnly bool `json:",omitempty"`
}

// ToolServer is an MCP server that a task gives its agent: a program that is run beside it, or an
// address that answers by streamable HTTP.
type ToolServer struct {
	Name    string
	Command string   `json:",omitempty"`
	Args    []string `json:",omitempty"`
	URL     string   `json:",omitempty"`
}

// Healthcheck is a command that must succeed in the container before the agent starts.
type Healthcheck struct {
	Command string   // of sh -c
	Argv    []string `json:",omitempty"` // in place of Command
	// Interval is the pause between two tries; StartInterval that within StartPeriod, in which a
	// failure does not count.
	Interval, Timeout, StartPeriod, StartInterval time.Duration
	// Retries is how many failures in a row end it.
	Retries int
}

// Name returns the image as records and messages name it.
func (e *Environment) Name() string {
	return cmp.Or(e.Image, e.Dockerfile)
}

// environment returns the container of a task, as the task or else its family defines it; nil if
// neither does.
func (l *loader) environment(t *Task, own TaskFile, where settingsFile) *Environment {
	family := l.file.TaskFile
	e := &Environment{
		Image:   cmp.Or(own.Image, family.Image),
		Images:  l.file.Images,
		Workdir: cmp.Or(own.Workdir, family.Workdir),
		User:    cmp.Or(own.User, family.User),
	}
	base, dockerfile := t.Dir, own.Dockerfile
	if dockerfile == "" && own.Image == "" {
		base, dockerfile = l.real, family.Dockerfile
	}
	if own.Dockerfile != "" { // the task's own setting comes before its family's image
		e.Image = own.Image
	}
	if own.Image != "" && own.Dockerfile != "" {
		l.add(where.wrong(l.rel(t.Dir), []string{"image"}, "give image or dockerfile, not both"))
	}
	if e.Workdir != "" && (!filepath.IsAbs(e.Workdir) || filepath.Clean(e.Workdir) == "/") {
		l.add(where.wrong(l.rel(t.Dir), []string{"workdir"}, "%q is not an absolute path below the root", e.Workdir))
	}
	e.Image = e.replaced(e.Image)
	switch {
	case e.Image != "":
		return e
	case dockerfile == "":
		return nil
	}
	path, found := l.ownFile(l.rel(filepath.Join(base, filepath.FromSlash(dockerfile))))
	if !filepath.IsLocal(filepath.FromSlash(dockerfile)) || !found {
		l.add(where.wrong(l.rel(t.Dir), []string{"dockerfile"}, "%s is not a file of this directory", dockerfile))
		return nil
	}
	l.fail(e.buildFrom(path))
	return e
}

func isFile(name string) bool { return exists(name) && !isDir(name) }

// replaced returns the replacement of an image, or the image itself.
func (e *Environment) replaced(image string) string { return cmp.Or(e.Images[image], image) }

// buildFrom makes the image one that is built from a Dockerfile, in its directory. Content
// identifies the file, everything in its directory, and the images that replace others.
func (e *Environment) buildFrom(dockerfile string) error {
	e.Dockerfile, e.Context = dockerfile, filepath.Dir(dockerfile)
	d := newDigester()
	if err := d.addDir("context", e.Context, nil); err != nil {
		return err
	}
	d.add(filepath.Base(dockerfile), "dockerfile", nil)
	if len(e.Images) > 0 {
		replaced, err := json.Marshal(e.Images)
		if err != nil {
			return err
		}
		d.add("images", "json", replaced)
	}
	e.Content = d.String()
	return nil
}

// Bases returns the images that the FROM lines of a Dockerfile name, as they are after replacement.
// Its own stages, scratch and names that a build argument decides are left out.
func (e *Environment) Bases(dockerfile string) []string {
	var bases []string
	stages := map[string]bool{"scratch": true}
	for _, from := range fromLines(dockerfile) {
		name := e.replaced(from.image)
		if !stages[strings.ToLower(name)] && !strings.Contains(name, "$") && !slices.Contains(bases, name) {
			bases = append(bases, name)
		}
		if from.stage != "" {
			stages[strings.ToLower(from.stage)] = true
		}
	}
	return bases
}

// Replaced returns the text of a Dockerfile with images replaced.
func (e *Environment) Replaced(dockerfile string) string {
	lines := strings.Split(dockerfile, "\n")
	for _, from := range fromLines(dockerfile) {
		lines[from.line] = strings.Replace(lines[from.line], from.image, e.replaced(from.image), 1)
	}
	return strings.Join(lines, "\n")
}

type fromLine struct {
	line         int
	image, stage string
}

// fromLines returns the FROM lines of a Dockerfile.
func fromLines(dockerfile string) []fromLine {
	var found []fromLine
	for number, line := range strings.Split(dockerfile, "\n") {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.EqualFold(words[0], "FROM") {
			continue
		}
		words = slices.DeleteFunc(words[1:], func(word string) bool { return strings.HasPrefix(word, "--") })
		if len(words) == 0 {
			continue
		}
		from := fromLine{line: number, image: words[0]}
		if len(words) > 2 && strings.EqualFold(words[1], "AS") {
			from.stage = words[2]
		}
		found = append(found, from)
	}
	return found
}
