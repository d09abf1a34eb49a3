// Package portable makes an experiment fit to be sent: without paths of the machine that it comes
// from, and without secrets.
//
//	sent, roots, withheld, err := portable.Pack(prepared, output)
//	err = sent.Unpack(cache, empty, environ) // where it arrives
package portable

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/ledger"
)

// Experiment is one as it is sent.
type Experiment struct {
	Protocol int                  `json:"protocol"`
	Prepared *experiment.Prepared `json:"prepared"`
	// Shared are the trees that every cell needs, Tasks and Arms those of one task or arm.
	Shared []string            `json:"shared,omitempty"`
	Tasks  map[string][]string `json:"tasks,omitempty"`
	Arms   map[string][]string `json:"arms,omitempty"`
	Pull   bool                `json:"pull,omitempty"` // pull images that a worker does not have
	// Builds are the sources of the images of tasks, by task.
	Builds map[string]build `json:"builds,omitempty"`
}

// build is what an image is built from. It is not part of a task's JSON.
type build struct {
	Dockerfile string `json:"dockerfile"`
	Context    string `json:"context"`
}

// treeMark begins paths inside a tree: it is followed by the hash and the rest of the path.
const treeMark = "fit-tree:"

// Root is a file or directory that travels.
type Root struct {
	Path, Hash string
	File       bool
	Skip       func(string) bool // leaves out what must not be sent
}

// Archive writes a file or directory as an archive, without what skip accepts.
func Archive(w io.Writer, root string, skip func(path string) bool) error {
	walk := tree.Walk{}
	if skip != nil {
		walk.Skip = func(name string) bool { return skip(filepath.Join(root, filepath.FromSlash(name))) }
	}
	return walk.Pack(w, root)
}

// Hash returns the hash of a file or directory as Archive writes it.
func Hash(root string, skip func(string) bool) (string, error) {
	hash := sha256.New()
	if err := Archive(hash, root, skip); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// packing turns the paths of an experiment into paths of trees.
type packing struct {
	out   *Experiment
	roots []Root // the longest path first
	// left are files that are not sent: run directories, and files of variables.
	left map[string]bool
	// used collects the trees that the paths of one task or arm lead to.
	used map[string]bool
}

// Pack makes an experiment portable. It returns the trees that it needs, and the names of the
// variables that are not sent, by arm.
func Pack(prepared *experiment.Prepared, output string) (*Experiment, []Root, map[string][]string, error) {
	copied, err := clone(prepared)
	if err != nil {
		return nil, nil, nil, err
	}
	if copied.Replay != "" {
		return nil, nil, nil, errors.New("a replay runs on one machine: leave out --fleet")
	}
	copied.Skills = ""        // every arm has its own by now
	copied.Plan.CreatedMs = 0 // the same command publishes the same experiment
	p := &packing{
		out: &Experiment{
			Prepared: copied,
			Tasks:    map[string][]string{},
			Arms:     map[string][]string{},
			Builds:   map[string]build{},
		},
		left: map[string]bool{output: true},
	}
	withheld, err := p.removeSecrets()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := p.findRoots(); err != nil {
		return nil, nil, nil, err
	}
	p.translate()
	return p.out, p.roots, withheld, nil
}

func clone(prepared *experiment.Prepared) (*experiment.Prepared, error) {
	content, err := json.Marshal(prepared)
	if err != nil {
		return nil, err
	}
	var copied experiment.Prepared
	if err := json.Unmarshal(content, &copied); err != nil {
		return nil, err
	}
	for i := range prepared.Family.Tasks {
		if from := prepared.Family.Tasks[i].Settings.Environment; from != nil {
			to := copied.Family.Tasks[i].Settings.Environment
			to.Dockerfile, to.Context = from.Dockerfile, from.Context
		}
	}
	return &copied, nil
}

// removeSecrets removes the values of secret variables. It returns their names by arm: a worker
// must have its own.
func (p *packing) removeSecrets() (map[string][]string, error) {
	family, names := p.out.Prepared.Family, map[string][]string{}
	var shared []string
	for i := range family.Tasks {
		t := &family.Tasks[i]
		for _, dir := range []string{family.Dir, t.Dir} {
			p.left[filepath.Join(dir, ".env")], p.left[filepath.Join(dir, ".env.local")] = true, true
		}
		for j := range t.Env {
			if t.Env[j].Secret {
				t.Env[j].Value = ""
				shared = append(shared, t.Env[j].Name)
			}
		}
	}
	for i := range p.out.Prepared.Arms {
		arm := &p.out.Prepared.Arms[i]
		names[arm.Name] = slices.Clone(shared)
		for name := range arm.Env {
			if local.Sensitive(name) {
				arm.Env[name] = ""
				names[arm.Name] = append(names[arm.Name], name)
			}
		}
		needed, err := serverVariables(arm)
		if err != nil {
			return nil, err
		}
		names[arm.Name] = append(names[arm.Name], needed...)
		slices.Sort(names[arm.Name])
		names[arm.Name] = slices.Compact(names[arm.Name])
		if u, err := url.Parse(arm.ModelURL); err == nil && u.User != nil {
			return nil, fmt.Errorf("arm %s: its model URL contains a name or password, which would be sent to the "+
				"workers; "+
				"set it in the workers' environment instead", arm.Name)
		}
	}
	return names, nil
}

// serverVariables returns the variables that the tool servers of an arm take from the environment.
// A secret that is written in their file would be sent to the workers.
func serverVariables(arm *experiment.Arm) ([]string, error) {
	if arm.MCP == "" {
		return nil, nil
	}
	servers, err := experiment.ReadServers(arm.MCP)
	if err != nil {
		return nil, err
	}
	var needed []string
	for _, s := range servers {
		for name := range s.Literal() {
			if local.Sensitive(name) {
				return nil,
					fmt.Errorf("arm %s: %s contains the value of %s, which would be sent to the workers; write "+
						"${NAME} instead, and set the variable in the workers' environment", arm.Name, arm.MCP, name)
			}
		}
		needed = append(needed, s.Variables()...)
	}
	return needed, nil
}

// findRoots chooses what is sent: the family, the repositories of its tasks, what arms bring, and
// modules. A root inside another one is a part of it.
func (p *packing) findRoots() error {
	prepared := p.out.Prepared
	wanted := []string{prepared.NodeModules, prepared.Family.Skills}
	for i := range prepared.Arms {
		for _, b := range prepared.Brings[prepared.Arms[i].Name] {
			wanted = append(wanted, b.Source)
		}
	}
	for i := range prepared.Family.Tasks {
		t := &prepared.Family.Tasks[i]
		wanted = append(wanted, t.Settings.Repo)
		if env := t.Settings.Environment; env != nil {
			wanted = append(wanted, env.Dockerfile, env.Context)
		}
		switch {
		case t.Instance != nil: // its row is sent with the task
			wanted = append(wanted, t.Instance.Repository)
		case t.Spec == nil:
			wanted = append(wanted, prepared.Family.Dir, t.Dir, t.Solution)
		default:
			wanted = append(wanted, t.Spec.File)
			if t.Spec.Reference != nil {
				wanted = append(wanted, t.Spec.Reference.File)
			}
		}
		for _, overlay := range t.Overlays {
			wanted = append(wanted, overlay.From)
		}
	}
	slices.Sort(wanted) // parents come before what is in them
	for _, path := range slices.Compact(wanted) {
		if path == "" || p.rootOf(path) != nil {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		r := Root{Path: path, File: !info.IsDir(), Skip: p.skip}
		if r.Hash, err = Hash(path, r.Skip); err != nil {
			return err
		}
		p.roots = append(p.roots, r)
	}
	slices.SortFunc(p.roots, func(a, b Root) int { return len(b.Path) - len(a.Path) })
	return nil
}

// skip leaves out what must not be sent: run directories, which are large and change, and files
// with the values of variables.
func (p *packing) skip(path string) bool {
	if p.left[path] {
		return true
	}
	_, plan := os.Stat(filepath.Join(path, experiment.PlanFile))
	_, lock := os.Stat(filepath.Join(path, experiment.AttemptsFile))
	return plan == nil && lock == nil
}

func (p *packing) rootOf(path string) *Root {
	for i := range p.roots {
		r := &p.roots[i]
		if path == r.Path || !r.File && strings.HasPrefix(path, r.Path+string(filepath.Separator)) {
			return r
		}
	}
	return nil
}

// translate replaces the paths.
func (p *packing) translate() {
	prepared := p.out.Prepared
	p.out.Shared = p.collect(func() {
		paths := []*string{&prepared.NodeModules, &prepared.Family.Skills, &prepared.Family.Dir}
		for _, path := range paths {
			*path = p.path(*path)
		}
		for _, brings := range prepared.Brings { // to find what one arm brings with another
			for _, b := range brings {
				if b.Kind == ledger.PieceSkill || b.Kind == ledger.PieceInstructions {
					p.path(b.Source)
				}
			}
		}
	})
	prepared.Family.Calibration, prepared.Family.Origin, prepared.Plan.Family.Origin = "", "", ""
	for i := range prepared.Arms {
		arm := &prepared.Arms[i]
		p.out.Arms[arm.Name] = p.collect(func() {
			for _, path := range armPaths(prepared, arm) {
				*path = p.path(*path)
			}
		})
	}
	for i := range prepared.Plan.Arms {
		for _, path := range ownPaths(&prepared.Plan.Arms[i].Arm) {
			*path = ""
		}
	}
	for i := range prepared.Family.Tasks {
		t := &prepared.Family.Tasks[i]
		p.out.Tasks[t.ID] = p.collect(func() {
			for _, path := range taskPaths(t) {
				*path = p.path(*path)
			}
		})
		if env := t.Settings.Environment; env != nil && env.Dockerfile != "" {
			p.out.Builds[t.ID] = build{Dockerfile: env.Dockerfile, Context: env.Context}
		}
	}
}

// armPaths returns the paths of an arm, and of what it brings.
func armPaths(prepared *experiment.Prepared, arm *experiment.Arm) []*string {
	paths := ownPaths(arm)
	for i := range prepared.Brings[arm.Name] {
		paths = append(paths, &prepared.Brings[arm.Name][i].Source)
	}
	return paths
}

func ownPaths(arm *experiment.Arm) []*string {
	return []*string{&arm.Skills, &arm.Instructions, &arm.Files, &arm.MCP, &arm.Settings}
}

// taskPaths returns the paths of a task.
func taskPaths(t *task.Task) []*string {
	paths := []*string{&t.Dir, &t.Solution, &t.Hooks.Dir, &t.Hooks.Preflight, &t.Hooks.Invariants, &t.Settings.Repo}
	for i := range t.Overlays {
		paths = append(paths, &t.Overlays[i].From)
	}
	if env := t.Settings.Environment; env != nil {
		paths = append(paths, &env.Dockerfile, &env.Context)
	}
	if t.Suite != nil {
		paths = append(paths, &t.Suite.Dir)
	}
	if t.Instance != nil {
		paths = append(paths, &t.Instance.Repository)
	}
	if t.Spec != nil {
		paths = append(paths, &t.Spec.File)
		if t.Spec.Reference != nil {
			paths = append(paths, &t.Spec.Reference.File)
		}
	}
	return paths
}

func (p *packing) collect(translate func()) []string {
	p.used = map[string]bool{}
	translate()
	return slices.Sorted(maps.Keys(p.used))
}

// path returns a path as it is sent. A path that is in no tree becomes an empty directory.
func (p *packing) path(path string) string {
	if path == "" {
		return ""
	}
	r := p.rootOf(path)
	if r == nil {
		return treeMark
	}
	p.used[r.Hash] = true
	rest := strings.TrimPrefix(path, r.Path)
	if r.File {
		rest = "/" + filepath.Base(r.Path)
	}
	return treeMark + r.Hash + filepath.ToSlash(rest)
}

// Unpack gives an experiment the paths of this machine: trees are in the cache, a path that is in
// no tree is the empty directory. Values that were not sent come from the environment.
func (p *Experiment) Unpack(cache, empty string, environ map[string]string) error {
	var problems []error
	here := func(path *string) {
		rest, travelled := strings.CutPrefix(*path, treeMark)
		switch {
		case *path == "":
		case !travelled:
			problems = append(problems, fmt.Errorf("the experiment has the path %q, which is not a part of it", *path))
		case rest == "":
			*path = empty
		case !filepath.IsLocal(filepath.FromSlash(rest)):
			problems = append(problems, fmt.Errorf("the experiment has the path %q, which leaves its tree", *path))
		default:
			*path = filepath.Join(cache, filepath.FromSlash(rest))
		}
	}
	prepared := p.Prepared
	if prepared == nil || prepared.Family == nil || prepared.Plan == nil {
		return errors.New("the experiment is incomplete")
	}
	family := prepared.Family
	for _, path := range []*string{&prepared.NodeModules, &family.Skills, &family.Dir} {
		here(path)
	}
	for i := range prepared.Arms {
		arm := &prepared.Arms[i]
		for _, path := range armPaths(prepared, arm) {
			here(path)
		}
		for name := range arm.Env {
			if local.Sensitive(name) {
				arm.Env[name] = environ[name]
			}
		}
	}
	for i := range prepared.Family.Tasks {
		t := &prepared.Family.Tasks[i]
		if env := t.Settings.Environment; env != nil {
			env.Dockerfile, env.Context = p.Builds[t.ID].Dockerfile, p.Builds[t.ID].Context
		}
		for _, path := range taskPaths(t) {
			here(path)
		}
		for j := range t.Env {
			if t.Env[j].Secret {
				t.Env[j].Value = environ[t.Env[j].Name]
			}
		}
	}
	return errors.Join(problems...)
}

// InTrees makes sure that no path of some arms and tasks, and none that all share, leads out of its
// tree by a link.
func (p *Experiment) InTrees(cache string, arms, tasks []string) error {
	prepared := p.Prepared
	paths := []*string{&prepared.NodeModules, &prepared.Family.Skills, &prepared.Family.Dir}
	for i := range prepared.Arms {
		if slices.Contains(arms, prepared.Arms[i].Name) {
			paths = append(paths, armPaths(prepared, &prepared.Arms[i])...)
		}
	}
	for i := range prepared.Family.Tasks {
		if slices.Contains(tasks, prepared.Family.Tasks[i].ID) {
			paths = append(paths, taskPaths(&prepared.Family.Tasks[i])...)
		}
	}
	for _, path := range paths {
		rest, err := filepath.Rel(cache, *path)
		if *path == "" || err != nil || !filepath.IsLocal(rest) {
			continue // the empty directory
		}
		hash, rest, _ := strings.Cut(filepath.ToSlash(rest), "/")
		root, err := os.OpenRoot(filepath.Join(cache, hash))
		if err != nil {
			return err
		}
		_, err = tree.Beneath(root, cmp.Or(rest, "."))
		if err = errors.Join(err, root.Close()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the experiment has the path %q, which leaves its tree: %w", rest, err)
		}
	}
	return nil
}

// Only keeps the arms of a pool: a worker needs only their agents.
func (p *Experiment) Only(arms []string) {
	prepared := p.Prepared
	prepared.Arms = slices.DeleteFunc(prepared.Arms,
		func(a experiment.Arm) bool { return !slices.Contains(arms, a.Name) })
	prepared.Plan.Arms = slices.DeleteFunc(prepared.Plan.Arms,
		func(a experiment.PlannedArm) bool { return !slices.Contains(arms, a.Name) })
}
