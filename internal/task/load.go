package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/tree"
)

// Options say how a family is loaded.
type Options struct {
	// CacheDir keeps families that come from git repositories; empty: a directory of the user's
	// cache.
	CacheDir string
	// Environ is the environment whose values win over environment files, as os.Environ gives it.
	Environ []string
	// Cases are the test cases of a skill that are wanted; nil: all. What is wrong with another one
	// leaves it out, and nothing else.
	Cases []string

	datasetBounds *datasetBounds // nil: the usual ones
}

// textLimit bounds prompts and templates.
const textLimit = 4 << 20

// Load reads a family and checks all of it. The error joins everything that is wrong.
func Load(ctx context.Context, origin string, opts Options) (*Family, error) {
	dir, revision, err := locate(ctx, origin, opts)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("family %s: %w", origin, err)
	}
	l := &loader{
		ctx:     ctx,
		opts:    opts,
		real:    real,
		fetched: revision != "",
		family:  &Family{Origin: origin, Dir: real, Revision: revision},
	}
	load := l.load
	switch {
	case isDir(real):
	case isRowsName(real) && isFile(real):
		l.real, l.family.Dir = filepath.Dir(real), filepath.Dir(real)
		load = func() { l.loadRows(real) }
	case filepath.Base(real) == "family.yaml":
		return nil, fmt.Errorf("%s is a file of a family; name its directory: %s", origin, filepath.Dir(origin))
	default:
		return nil, fmt.Errorf("family %s: neither a directory nor a .jsonl or .json file of SWE-bench rows", origin)
	}
	if l.root, err = os.OpenRoot(l.real); err != nil {
		return nil, fmt.Errorf("family %s: %w", origin, err)
	}
	defer l.root.Close()
	load()
	if err := errors.Join(l.problems...); err != nil {
		return nil, err
	}
	return l.family, nil
}

// locate finds the directory of a family, and its revision if that is a commit.
func locate(ctx context.Context, origin string, opts Options) (dir, revision string, err error) {
	parsed, err := ParseOrigin(origin)
	if err != nil {
		return "", "", err
	}
	if parsed.Path != "" {
		dir, err := filepath.Abs(parsed.Path)
		return dir, "", err
	}
	cache, err := opts.cacheDir()
	if err != nil {
		return "", "", err
	}
	root, sha, err := fetch(ctx, parsed, cache)
	if err != nil {
		return "", "", err
	}
	checkout, err := os.OpenRoot(root)
	if err != nil {
		return "", "", err
	}
	defer checkout.Close()
	subdir, err := tree.Beneath(checkout, cmp.Or(parsed.Subdir, "."))
	if _, out := errors.AsType[*tree.LinkError](err); out {
		return "", "", fmt.Errorf("family %s: %w", origin, err)
	}
	if dir = filepath.Join(root, filepath.FromSlash(subdir)); err != nil || !isDir(dir) {
		return "", "", fmt.Errorf("family %s: commit %s has no directory %s", origin, sha, parsed.Subdir)
	}
	return dir, "git:" + sha, nil
}

func (o Options) cacheDir() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to keep families from git: %w", err)
	}
	return filepath.Join(cache, "fit", "families"), nil
}

// loader collects a family and its errors.
type loader struct {
	ctx      context.Context
	opts     Options
	real     string // the family's directory, without links
	root     *os.Root
	fetched  bool            // from a git repository
	links    map[string]bool // those that were refused
	family   *Family
	file     familyFile
	where    settingsFile // of family.yaml
	problems []error
	// wrongRows counts the rows of a file that are wrong: some are enough to see the mistake.
	wrongRows int
}

// maxWrongRows is how many wrong rows are reported.
const maxWrongRows = 5

func (l *loader) add(err error) {
	if err != nil {
		l.problems = append(l.problems, err)
	}
}

// mistake returns an error about a file as a whole.
func mistake(file, format string, args ...any) error {
	return &document.Error{File: file, Msg: fmt.Sprintf(format, args...)}
}

func (l *loader) wrong(file, format string, args ...any) { l.add(mistake(file, format, args...)) }

// fail records an error that is not the author's fault, such as an unreadable disk. It ignores nil.
func (l *loader) fail(err error) {
	if err != nil {
		l.add(fmt.Errorf("family %s: %w", l.family.Origin, err))
	}
}

// ownFile returns the path of a file of the family. It reports false for a name that leads out of
// the family or is not that of a regular file.
func (l *loader) ownFile(name string) (string, bool) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", false
	}
	file := l.at(name)
	info, err := os.Lstat(file)
	return file, err == nil && info.Mode().IsRegular()
}

// keepRow adds the task that was made from a row of a file, or the row's error. It returns
// errEnough where no more rows are wanted.
func (l *loader) keepRow(t Task, err error, file string, line int) error {
	if err != nil {
		l.add(rowError(err, file, line))
		if l.wrongRows++; l.wrongRows == maxWrongRows {
			return errEnough
		}
		return nil
	}
	return l.keep(t)
}

// keep adds a task. It returns errEnough where no more are wanted.
func (l *loader) keep(t Task) error {
	if l.family.Tasks = append(l.family.Tasks, t); len(l.family.Tasks) == l.file.Data.Limit {
		return errEnough
	}
	return nil
}

// rowError gives an error the place of the row that it is about.
func rowError(err error, file string, line int) error {
	if _, ok := errors.AsType[*document.Error](err); ok {
		return err
	}
	return &document.Error{File: file, Line: line, Msg: err.Error()}
}

// rel names a path of the family the way its author does.
func (l *loader) rel(name string) string {
	if rel, err := filepath.Rel(l.real, name); err == nil {
		return filepath.ToSlash(rel)
	}
	return name
}

func (l *loader) load() {
	var err error
	l.where, err = l.readSettings("family.yaml", &l.file)
	l.add(err)
	l.besides()
	l.family.Name = cmp.Or(l.file.Name, filepath.Base(l.real))
	if profile, ok := l.text("judge.md"); ok {
		_, body, err := document.FrontMatter("judge.md", []byte(profile))
		l.add(err)
		l.family.JudgeProfile = strings.TrimLeft(string(body), "\n")
	}
	l.calibration()
	if l.dir(".claude") != "" {
		l.family.Skills = l.real
	}
	l.tasks()
	if l.family.Revision == "" {
		l.family.Revision, err = revisionOf(l.real)
		l.fail(err)
	}
}

// loadRows loads a family that is one file of SWE-bench rows. Files beside it are not part of it.
func (l *loader) loadRows(file string) {
	l.family.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	l.rows(filepath.Base(file))
	d := newDigester()
	l.fail(d.addFile(filepath.Base(file), entry{source: file}))
	l.family.Revision = d.String()
}

// tasks loads the tasks of the family: those of its directory, or those that its dataset makes.
func (l *loader) tasks() {
	switch {
	case isHarbor(l.real):
		l.harbor()
		return
	case l.file.SWE.SWEBench != "":
		l.rows(l.file.SWE.SWEBench)
		return
	case isInstances(l.real):
		l.taskRepository()
		return
	case isSkill(l.real):
		l.evals()
		return
	}
	ids := l.taskIDs()
	switch {
	case l.file.Data.Dataset != "" && len(ids) > 0:
		l.add(l.where.wrong("family.yaml", []string{"dataset"}, "a family has a dataset or tasks/, not both"))
	case l.file.Data.Dataset != "":
		l.dataset()
	case l.file.Data.used():
		l.add(l.where.wrong("family.yaml", nil, "dataset is missing: the file of samples that the other settings "+
			"apply to"))
	case len(ids) == 0 && l.meant() != "":
		l.add(errors.New(l.meant()))
	case len(ids) == 0:
		l.wrong("tasks", "the family has no task: make a directory tasks/<id> with an agent.task.md in it, or name a "+
			"dataset in family.yaml")
	}
	for _, id := range ids {
		l.family.Tasks = append(l.family.Tasks, l.task(id))
	}
}

// meant says which family was probably meant where a part of one was named; empty if it was not.
func (l *loader) meant() string {
	name, above := filepath.Base(l.real), filepath.Dir(filepath.Clean(l.family.Origin))
	_, err := os.Stat(filepath.Join(l.real, "plan.json"))
	switch {
	case err == nil:
		return fmt.Sprintf("%s is a run directory, not a family; name the directory of its tasks", l.family.Origin)
	case name == "tasks":
		return fmt.Sprintf("%s has the tasks of a family; name the family: %s", l.family.Origin, above)
	case filepath.Base(filepath.Dir(l.real)) == "tasks":
		return fmt.Sprintf("%s is a task of a family; name the family, %s, and choose the task with --task %s",
			l.family.Origin, filepath.Dir(above), name)
	}
	return ""
}

// calibration finds the file of human verdicts that family.yaml names; it must be in the family.
func (l *loader) calibration() {
	name := l.file.Calibration
	if name == "" {
		return
	}
	file, ok := l.ownFile(name)
	if !ok {
		l.add(l.where.wrong("family.yaml", []string{"calibration"}, "%s is not a file of this directory", name))
		return
	}
	l.family.Calibration = file
}

// taskIDs lists the directories below tasks.
func (l *loader) taskIDs() []string {
	dir := l.dir("tasks")
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	l.fail(err)
	var ids []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if id := e.Name(); !utf8.ValidString(id) ||
			strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }) {
			l.wrong(fmt.Sprintf("tasks/%q", id), "the name of a task is printable text")
			continue
		}
		ids = append(ids, e.Name())
	}
	slices.Sort(ids)
	return ids
}

// revisionOf identifies a local family by its content. Generated files and files private to the
// machine do not count, so that the revision is the same before and after an installation.
func revisionOf(dir string) (string, error) {
	installs := exists(filepath.Join(dir, "apm.yml"))
	d := newDigester()
	err := d.addDir("", dir, func(rel string) bool {
		base := path.Base(rel)
		return isGenerated(rel) || base == ".env.local" || installs && (rel == ".claude" || rel == "apm.lock.yaml")
	})
	return d.String(), err
}

// text reads a text file of the family; it reports false if there is none.
func (l *loader) text(rel string) (string, bool) {
	name := l.at(rel)
	if name == "" {
		if err := l.linkError(rel); errors.Is(err, errDangling) {
			l.wrong(rel, "the link %v", err)
		}
		return "", false
	}
	info, err := os.Lstat(name)
	if err != nil {
		l.fail(err)
		return "", false
	}
	if !info.Mode().IsRegular() || info.Size() > textLimit {
		l.wrong(rel, "not a text file of at most %d bytes", textLimit)
		return "", false
	}
	content, err := l.read(rel)
	if err != nil {
		l.fail(err)
		return "", false
	}
	if !utf8.Valid(content) {
		l.wrong(rel, "not text: it is not valid UTF-8")
		return "", false
	}
	return string(content), true
}
