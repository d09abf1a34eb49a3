package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/task/template"
)

// Sample is one row of a dataset. Its task has the prompt; this is what the answer is checked
// against.
type Sample struct {
	// Columns are its values: text, numbers, booleans, lists and objects.
	Columns map[string]any
	// AnswerFile is the file of the working directory that has the answer; empty: the agent's last
	// message is the answer.
	AnswerFile string
	Checks     []AnswerCheck
	// Statements are sentences about the run that judges decide, and not code.
	Statements []Statement
	// Silent says that the skill under test should stay unopened.
	Silent bool
	// Reference is an answer that passes all checks; nil if none is known.
	Reference *string
	// Files are put into the working directory.
	Files []SampleFile
}

// Statement is a sentence that is true of a good run.
type Statement struct {
	Text string
	// Conduct says that it is about what the agent does, and not about the result.
	Conduct bool
}

// JSON returns the columns as hooks get them.
func (s *Sample) JSON() string { return template.Text(s.Columns) }

// maxHookSample bounds the columns of samples that hooks get, in a variable of their environment.
const maxHookSample = 100 << 10

// SampleFile is a file that a sample puts into the working directory.
type SampleFile struct {
	Path    string
	Content string
	From    string // the file to copy; empty: Content is what is in it
}

// datasetFile is the part of family.yaml about a dataset.
type datasetFile struct {
	Dataset   string            `yaml:"dataset" doc:"File of samples, each of which becomes a task: .csv, .jsonl, .json or .yaml."`
	ID        string            `yaml:"id" doc:"Template of the name of a sample's task; default: the column id, else the number of the sample."`
	Prompt    string            `yaml:"prompt" doc:"Template of the prompt: {{column}} stands for a value of the sample, {{column | letters}} for a list as lettered lines."`
	Task      string            `yaml:"task" doc:"Directory of this family, laid out like a task, that all samples share. Its agent.task.md is the template of the prompt."`
	Files     map[string]string `yaml:"files" doc:"Files of the working directory, by path: templates of what is in them."`
	Attach    map[string]string `yaml:"attach" doc:"Files of the working directory, by path: templates of the files of this directory that are copied."`
	Answer    string            `yaml:"answer" doc:"File of the working directory that has the answer; default: the agent's last message is the answer."`
	Grade     []checkFile       `yaml:"grade" doc:"Checks of the answer. A sample may have more of its own in a column called grade."`
	Reference string            `yaml:"reference" doc:"Template of an answer that passes, for lint."`
	Limit     int               `yaml:"limit" doc:"Use only the first samples, this many." min:"1"`
}

func (d *datasetFile) used() bool {
	return d.Prompt != "" || d.Task != "" || d.Answer != "" || d.Reference != "" || d.ID != "" || d.Limit != 0 ||
		len(d.Files)+len(d.Attach)+len(d.Grade) > 0
}

// datasetLoader makes tasks of samples.
type datasetLoader struct {
	*loader
	shared    Task // what all samples have in common
	id        *template.Template
	prompt    *template.Template
	reference *template.Template
	files     map[string]*template.Template // by path
	attach    map[string]*template.Template
	checks    []checkTemplate
	templates []placedTemplate
	seen      map[string]int // lines by id
	kept      int64          // bytes
}

// placedTemplate is a template and the setting that contains it.
type placedTemplate struct {
	*template.Template
	at []string
}

// dataset loads the samples of the family.
func (l *loader) dataset() {
	d := &datasetLoader{loader: l, seen: map[string]int{}}
	before := len(l.problems)
	d.parse()
	if len(l.problems) > before {
		return
	}
	reader := &datasetReader{
		name:   l.file.Data.Dataset,
		bounds: l.opts.bounds(),
		header: d.header,
		row:    d.row,
	}
	if name := filepath.FromSlash(l.file.Data.Dataset); !filepath.IsLocal(name) {
		l.add(l.where.wrong("family.yaml", []string{"dataset"}, "%s is not a file of this directory", name))
	} else {
		l.readRows(reader)
	}
	if len(l.family.Tasks) == 0 && len(l.problems) == before {
		l.wrong(l.file.Data.Dataset, "it has no samples")
	}
}

// bounds returns the limits of datasets; tests have smaller ones.
func (o Options) bounds() datasetBounds {
	if o.datasetBounds != nil {
		return *o.datasetBounds
	}
	return defaultDatasetBounds
}

// parse reads the templates and what all samples share.
func (d *datasetLoader) parse() {
	file := &d.file.Data
	if file.Task != "" {
		d.sharedDirectory()
	} else {
		d.shared = d.taskIn("", "", TaskFile{}, settingsFile{})
		d.overlays(&d.shared)
		if strings.TrimSpace(file.Prompt) == "" {
			d.add(d.where.wrong("family.yaml", []string{"dataset"},
				"a dataset needs a prompt: write prompt: with {{column}} in it, or name a task directory"))
		}
		d.prompt = d.template(file.Prompt, "prompt")
	}
	if file.ID != "" {
		d.id = d.template(file.ID, "id")
	}
	if file.Reference != "" {
		d.reference = d.template(file.Reference, "reference")
	}
	d.files, d.attach = d.paths(file.Files, "files"), d.paths(file.Attach, "attach")
	if file.Answer != "" && !filepath.IsLocal(filepath.FromSlash(file.Answer)) {
		d.add(d.where.wrong("family.yaml", []string{"answer"}, "%s is not inside the working directory", file.Answer))
	}
	for i, check := range file.Grade {
		at := []string{"grade", strconv.Itoa(i)}
		compiled, err := d.compile(check, at)
		if err != nil {
			d.add(err)
			continue
		}
		d.checks = append(d.checks, compiled)
	}
}

// sharedDirectory loads the directory that all samples share.
func (d *datasetLoader) sharedDirectory() {
	dir := path.Clean(filepath.ToSlash(d.file.Data.Task))
	if !filepath.IsLocal(filepath.FromSlash(dir)) || d.dir(dir) == "" {
		d.add(d.where.wrong("family.yaml", []string{"task"}, "%s is not a directory below this one", d.file.Data.Task))
		return
	}
	own, where := d.ownSettings(dir)
	d.shared = d.taskIn("", dir, own, where)
	d.overlays(&d.shared)
	if d.file.Data.Prompt != "" {
		d.prompt = d.template(d.file.Data.Prompt, "prompt")
		return
	}
	name := path.Join(dir, "agent.task.md")
	text, _ := d.text(name)
	prompt, err := template.Parse(text)
	switch wrong, ok := errors.AsType[*template.Error](err); {
	case strings.TrimSpace(text) == "":
		d.wrong(name, "missing or empty: it is the template of the prompt")
	case ok:
		line := 1 + strings.Count(text[:wrong.Offset], "\n")
		d.add(&document.Error{File: name, Line: line, Msg: wrong.Error()})
	default:
		d.prompt = prompt
		d.templates = append(d.templates, placedTemplate{prompt, []string{"task"}})
	}
}

// template parses the template of a setting.
func (d *datasetLoader) template(source string, at ...string) *template.Template {
	parsed, err := template.Parse(source)
	if err != nil {
		d.add(d.where.wrong("family.yaml", at, "%v", err))
		return &template.Template{}
	}
	d.templates = append(d.templates, placedTemplate{parsed, at})
	return parsed
}

func (d *datasetLoader) paths(files map[string]string, key string) map[string]*template.Template {
	parsed := map[string]*template.Template{}
	for name, source := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			d.add(d.where.wrong("family.yaml", []string{key, name}, "not a path inside the working directory"))
		}
		parsed[name] = d.template(source, key, name)
	}
	return parsed
}

// header checks all templates against the columns that every sample has.
func (d *datasetLoader) header(columns []string) error {
	var problems []error
	for _, one := range d.templates {
		if name := one.Unknown(columns); name != "" {
			problems = append(problems, d.where.wrong("family.yaml", one.at,
				"{{%s}} is not a column of %s, which has %s", name, d.file.Data.Dataset, strings.Join(columns, ", ")))
		}
	}
	return errors.Join(problems...)
}

// row makes a task of a sample.
func (d *datasetLoader) row(row datasetRow) error {
	bounds := d.opts.bounds()
	d.kept += sizeOf(row.columns)
	if len(d.family.Tasks) >= bounds.samples || d.kept > bounds.all {
		return &document.Error{
			File: d.file.Data.Dataset,
			Line: row.line,
			Msg: fmt.Sprintf("more than %d samples or %d bytes; write limit: 1000 into family.yaml to use the "+
				"first thousand, or split the file", bounds.samples, bounds.all),
		}
	}
	made, err := d.sample(row)
	return d.keepRow(made, err, d.file.Data.Dataset, row.line)
}

// sizeOf returns about how many bytes of text are in a value.
func sizeOf(value any) int64 {
	switch value := value.(type) {
	case string:
		return int64(len(value)) + 16
	case map[string]any:
		size := int64(0)
		for _, member := range value {
			size += sizeOf(member)
		}
		return size
	case []any:
		size := int64(0)
		for _, element := range value {
			size += sizeOf(element)
		}
		return size
	}
	return 16
}

func (d *datasetLoader) sample(row datasetRow) (Task, error) {
	t := d.shared
	var err error
	if t.ID, err = d.name(row); err != nil {
		return t, err
	}
	if t.Prompt, err = d.prompt.Fill(row.columns, nil); err != nil {
		return t, fmt.Errorf("%w, which the prompt names", err)
	}
	if strings.TrimSpace(t.Prompt) == "" {
		return t, errors.New("the prompt is empty")
	}
	sample := &Sample{
		Columns:    row.columns,
		AnswerFile: d.file.Data.Answer,
	}
	if d.reference != nil {
		text, err := d.reference.Fill(row.columns, nil)
		if err != nil {
			return t, fmt.Errorf("%w, which reference names", err)
		}
		sample.Reference = &text
	}
	if err := d.sampleFiles(sample); err != nil {
		return t, err
	}
	rubric, err := d.sampleChecks(sample)
	if err != nil {
		return t, err
	}
	if rubric != "" && t.JudgeTemplate == "" {
		t.JudgeTemplate = rubricTemplate(rubric)
	}
	if len(sample.Checks) == 0 && t.JudgeTemplate == "" && t.Suite == nil && t.Hooks.Invariants == "" {
		return t, errors.New("no checks: add grade: to family.yaml, or a grade column to the dataset")
	}
	t.Sample = sample
	if t.Hooks.Dir != "" && len(sample.JSON()) > maxHookSample {
		return t, fmt.Errorf("more than %d bytes, which hooks cannot get in their environment", maxHookSample)
	}
	return t, d.sampleDigests(&t)
}

// name returns the id of a sample's task.
func (d *datasetLoader) name(row datasetRow) (string, error) {
	id := strconv.Itoa(len(d.family.Tasks) + 1)
	if d.id != nil {
		var err error
		if id, err = d.id.Fill(row.columns, nil); err != nil {
			return "", fmt.Errorf("%w, which id names", err)
		}
	} else if value, ok := row.columns["id"]; ok {
		id = template.Text(value)
	}
	if !isTaskID(id) {
		return "", fmt.Errorf("the id %q is not printable text", id)
	}
	if tooLong(id) {
		return "", fmt.Errorf("the id is longer than %d bytes, and names directories", maxTaskID)
	}
	if line, twice := d.seen[id]; twice {
		return "", fmt.Errorf("the id %s is that of line %d too; ids are unique", id, line)
	}
	d.seen[id] = row.line
	return id, nil
}

func (d *datasetLoader) sampleFiles(sample *Sample) error {
	for name, content := range d.files {
		text, err := content.Fill(sample.Columns, nil)
		if err != nil {
			return fmt.Errorf("%w, which files names", err)
		}
		sample.Files = append(sample.Files, SampleFile{Path: name, Content: text})
	}
	for name, source := range d.attach {
		from, err := source.Fill(sample.Columns, nil)
		if err != nil {
			return fmt.Errorf("%w, which attach names", err)
		}
		file, ok := d.ownFile(from)
		if !ok {
			return fmt.Errorf("attach: %q is not a file of this directory", from)
		}
		sample.Files = append(sample.Files, SampleFile{Path: name, From: file})
	}
	slices.SortFunc(sample.Files, func(a, b SampleFile) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// sampleDigests identifies a sample: what the agent sees of it, and what the answer is checked
// against.
func (d *datasetLoader) sampleDigests(t *Task) error {
	visible, hidden := newDigester(), newDigester()
	visible.add("shared", "digest", []byte(t.Digest.Visible))
	visible.add("prompt", "prompt", []byte(t.Prompt))
	hidden.add("shared", "digest", []byte(t.Digest.Hidden))
	hidden.add("judge", "template", []byte(t.JudgeTemplate))
	hidden.add("answer", "file", []byte(t.Sample.AnswerFile))
	checks, err := json.Marshal(t.Sample.Checks)
	if err != nil {
		return err
	}
	hidden.add("grade", "json", checks)
	for _, statement := range t.Sample.Statements {
		hidden.add("statement", "text", []byte(statement.Text))
	}
	now, err := t.sampleFileDigests(t.Files)
	if err != nil {
		return err
	}
	visible.add("files", "digest", []byte(now.Visible))
	hidden.add("files", "digest", []byte(now.Hidden))
	t.Digest, t.Files = Digest{Visible: visible.String(), Hidden: hidden.String()}, now
	return nil
}

// sampleFileDigests adds the files of a sample to the digests of those that all samples share.
func (t *Task) sampleFileDigests(shared Digest) (Digest, error) {
	visible, hidden := newDigester(), newDigester()
	visible.add("shared", "digest", []byte(shared.Visible))
	hidden.add("shared", "digest", []byte(shared.Hidden))
	hasFiles := func(c AnswerCheck) bool { return len(c.Files) > 0 }
	if len(t.Sample.Files) == 0 && !slices.ContainsFunc(t.Sample.Checks, hasFiles) {
		return shared, nil
	}
	for _, file := range t.Sample.Files {
		if file.From == "" {
			visible.add(file.Path, "file", []byte(file.Content))
		} else if err := visible.addFile(file.Path, entry{source: file.From}); err != nil {
			return Digest{}, err
		}
	}
	for _, check := range t.Sample.Checks {
		for _, name := range check.Files {
			if err := hidden.addFile(filepath.Base(name), entry{source: name}); err != nil {
				return Digest{}, err
			}
		}
	}
	return Digest{Visible: visible.String(), Hidden: hidden.String()}, nil
}
