package judge

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/ledger"
)

// The parts that labels are split into. The train split is for examples in prompts, the dev split
// for choosing, the test split for measuring, once.
const (
	splitTrain = "train"
	SplitDev   = "dev"
	SplitTest  = "test"
)

// The ways in which labelled runs can have been chosen.
const (
	// designBalanced is about as many good as bad ones: the judge's error rates carry over, its
	// pass rate does not.
	designBalanced = "balanced"
	// DesignRandom is a random sample of the judged runs.
	DesignRandom = "random"
)

// Labels is labels.yaml: people's verdicts on judged runs. A label is about one question: a
// dimension of a head to head or, without one, what the judge of a family was asked.
type Labels struct {
	Design string        `yaml:"design" doc:"How the labelled runs were chosen: balanced (as many good as bad ones) or random (a random sample of the judged runs); default balanced." enum:"balanced,random"`
	Judge  LabelledJudge `yaml:"judge" doc:"The judge whose verdicts the labels carry, where they do."`
	Labels []Label       `yaml:"labels" doc:"The verdicts of people, run by run." required:"true"`

	path   string
	source []byte
}

// LabelledJudge identifies the judge that a set of labels is about.
type LabelledJudge struct {
	Digests []string `yaml:"digests" doc:"Digests of the judge as shown in records and reports (digests.judge). Labels on another judge correct nothing."`
}

// Label is one person's verdict on one run. Without the judge's verdict the run must be in the
// reported experiment.
type Label struct {
	Task  string `yaml:"task" doc:"Task of the run." required:"true"`
	Arm   string `yaml:"arm" doc:"Arm of the run; needed where there are several."`
	Run   int    `yaml:"run" doc:"Which repetition it is, counted from 0." min:"0"`
	Human string `yaml:"human" doc:"What a person says about the work." enum:"pass,fail" required:"true"`
	Judge string `yaml:"judge" doc:"What the judge said; default: its verdict in the ledger." enum:"pass,fail"`
	// Dimension and Split belong to labels of a head to head, which are not about this judge.
	Dimension string `yaml:"dimension" doc:"The dimension of a head to head that the label is about. Such labels do not count here." enum:"correctness,verification,completeness,codeQuality,minimalDiff"`
	Split     string `yaml:"split" doc:"The part of a head to head's labels that it belongs to." enum:"train,dev,test"`
}

// Passed reports whether the person passes the work.
func (l Label) Passed() bool { return l.Human == ledger.Pass }

// Cell is the run that the label is about.
func (l Label) Cell() ledger.Cell { return ledger.Cell{Arm: l.Arm, TaskID: l.Task, RunIndex: l.Run} }

// NewLabels returns the labels of a file that is not there yet.
func NewLabels(path string) *Labels { return &Labels{path: path} }

// LoadLabels reads labels.yaml. Mistakes are reported with file, line and column.
func LoadLabels(path string) (*Labels, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	return parseLabels(path, source)
}

func parseLabels(path string, source []byte) (*Labels, error) {
	labels := &Labels{path: path, source: source}
	if _, err := document.Read(path, source, labels); err != nil {
		return nil, err
	}
	seen := map[Label]bool{}
	for i, l := range labels.Labels {
		about := l
		about.Human, about.Judge, about.Split = "", "", ""
		what := fmt.Sprintf("task %s, run %d", l.Task, l.Run)
		if l.Dimension != "" {
			what = fmt.Sprintf("%s of task %s, arm %s, run %d", l.Dimension, l.Task, l.Arm, l.Run)
		}
		switch {
		case seen[about]:
			return nil, labels.errorAt(i, "%s is labelled twice", what)
		case l.Dimension != "" && l.Arm == "":
			return nil, labels.errorAt(i, "a label of a dimension needs its arm")
		}
		seen[about] = true
	}
	return labels, nil
}

// Count returns the number of labels of a dimension.
func (l *Labels) Count(dimension string) (pass, fail int) {
	for _, one := range l.Labels {
		switch {
		case one.Dimension != dimension:
		case one.Passed():
			pass++
		default:
			fail++
		}
	}
	return pass, fail
}

// Item is a run to label. It says nothing about who did the work, nor what the judges say.
type Item struct {
	Dimension string
	// Question is what is asked, Evidence what a judge is shown.
	Question, Evidence string

	cell ledger.Cell
}

// Asks returns the question, which is the heading of its prompt, and the rest of the prompt.
func (i *Item) Asks() (question, guide string) {
	heading, guide, _ := strings.Cut(strings.TrimSpace(i.Question), "\n")
	heading = strings.TrimSpace(strings.TrimPrefix(strings.TrimLeft(heading, "# "), "Question:"))
	return strings.ToUpper(heading[:min(1, len(heading))]) + heading[min(1, len(heading)):], strings.TrimSpace(guide)
}

// Next returns a run that has no label in a dimension yet, in an order that the seed decides.
func (l *Labels) Next(subjects []Subject, settings Settings, dimension string, seed uint64) (Item, bool) {
	settings = settings.withDefaults()
	labelled := map[ledger.Cell]bool{}
	for _, one := range l.Labels {
		if one.Dimension == dimension {
			labelled[one.Cell()] = true
		}
	}
	var best *Subject
	order := ""
	for i := range subjects {
		s := &subjects[i]
		if labelled[s.cell()] || !s.asked(settings.Mode, dimension) {
			continue
		}
		if place := digest(fmt.Sprintf("%d %q", seed, s.name())); best == nil || place < order {
			best, order = s, place
		}
	}
	if best == nil {
		return Item{}, false
	}
	q := newView(best).single(newFrames(settings.Prompts), kindSingle, dimension)
	var text strings.Builder
	for _, part := range q.shown {
		text.WriteString(part.text + "\n")
	}
	return Item{
		Dimension: dimension,
		Question:  settings.Prompts[dimension],
		Evidence:  text.String(),
		cell:      best.cell(),
	}, true
}

// Add keeps a label.
func (l *Labels) Add(item Item, pass bool) error {
	added := Label{
		Task:      item.cell.TaskID,
		Arm:       item.cell.Arm,
		Run:       item.cell.RunIndex,
		Dimension: item.Dimension,
		Human:     ledger.Fail,
	}
	if pass {
		added.Human = ledger.Pass
	}
	// A line at the end keeps what people wrote; a file of another form is rewritten.
	source := append(slices.Clone(l.source), []byte(added.line())...)
	if parsed, err := parseLabels(l.path, source); err == nil && len(parsed.Labels) == len(l.Labels)+1 {
		return l.write(source)
	}
	return l.rewrite(append(slices.Clone(l.Labels), added))
}

// rewrite writes the whole file anew.
func (l *Labels) rewrite(list []Label) error {
	changed := *l
	changed.Labels = list
	return l.write(changed.text())
}

func (l *Labels) write(source []byte) error {
	written, err := parseLabels(l.path, source)
	if err == nil {
		err = atomicfile.WriteSynced(l.path, 0o644, source)
	}
	if err != nil {
		return fmt.Errorf("write labels: %w", err)
	}
	*l = *written
	return nil
}

// line returns a label as a line of the file.
func (l Label) line() string {
	fields := []string{"task: " + jsonenc.String(l.Task)}
	if l.Arm != "" {
		fields = append(fields, "arm: "+jsonenc.String(l.Arm))
	}
	fields = append(fields, "run: "+strconv.Itoa(l.Run))
	for _, optional := range [][2]string{
		{"dimension", l.Dimension},
		{"human", l.Human},
		{"judge", l.Judge},
		{"split", l.Split},
	} {
		if optional[1] != "" {
			fields = append(fields, optional[0]+": "+optional[1])
		}
	}
	return "  - {" + strings.Join(fields, ", ") + "}\n"
}

// text returns the whole file, with the comments that the old one began with.
func (l *Labels) text() []byte {
	var b strings.Builder
	for line := range strings.Lines(string(l.source)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		b.WriteString(line)
	}
	if l.Design != "" {
		b.WriteString("design: " + l.Design + "\n")
	}
	if len(l.Judge.Digests) > 0 {
		b.WriteString("judge:\n  digests:\n")
		for _, one := range l.Judge.Digests {
			b.WriteString("    - " + jsonenc.String(one) + "\n")
		}
	}
	b.WriteString("labels:\n")
	for _, one := range l.Labels {
		b.WriteString(one.line())
	}
	return []byte(b.String())
}

// splits are the parts and their shares of the labels. On a tie the first is taken.
var splits = []struct {
	name  string
	share float64
}{{SplitTest, 0.425}, {SplitDev, 0.425}, {splitTrain, 0.15}}

// Split gives every label of a dimension a part, all labels of a cluster the same one: runs of one
// task are alike, and a judge must not be measured on the labels that it was chosen by. It keeps
// what was split before, and returns how many labels are new.
func (l *Labels) Split(subjects []Subject, seed uint64) (int, error) {
	clusterOf := clusters(subjects)
	assigned := map[string]string{}
	counts := map[string][2]float64{} // fails and passes by split; all of them under ""
	fresh := map[string][2]float64{}  // of the clusters without a split
	for _, one := range l.Labels {
		if one.Dimension == "" {
			continue
		}
		counts[""] = plus(counts[""], one)
		if one.Split != "" {
			assigned[clusterOf(one)] = one.Split
			counts[one.Split] = plus(counts[one.Split], one)
		}
	}
	var order []string
	for _, one := range l.Labels {
		cluster := clusterOf(one)
		switch part, known := assigned[cluster]; {
		case one.Dimension == "" || one.Split != "":
		case known:
			counts[part] = plus(counts[part], one)
		default:
			if _, seen := fresh[cluster]; !seen {
				order = append(order, cluster)
			}
			fresh[cluster] = plus(fresh[cluster], one)
		}
	}
	slices.SortFunc(order, func(a, b string) int {
		return strings.Compare(digest(fmt.Sprintf("%d %q", seed, a)), digest(fmt.Sprintf("%d %q", seed, b)))
	})
	for _, cluster := range order {
		part := bestSplit(counts, fresh[cluster])
		assigned[cluster] = part
		counts[part] = [2]float64{counts[part][0] + fresh[cluster][0], counts[part][1] + fresh[cluster][1]}
	}
	list, changed := slices.Clone(l.Labels), 0
	for i, one := range list {
		if one.Dimension != "" && one.Split == "" {
			list[i].Split = assigned[clusterOf(one)]
			changed++
		}
	}
	if changed == 0 {
		return 0, nil
	}
	return changed, l.rewrite(list)
}

func plus(count [2]float64, one Label) [2]float64 {
	if one.Passed() {
		count[1]++
	} else {
		count[0]++
	}
	return count
}

// bestSplit returns the part that gets nearest to its share of passes and of fails with a cluster.
func bestSplit(counts map[string][2]float64, cluster [2]float64) string {
	best, least := "", 0.0
	for _, part := range splits {
		change := 0.0
		for kind := range cluster {
			gap := counts[part.name][kind] - part.share*counts[""][kind]
			change += (gap+cluster[kind])*(gap+cluster[kind]) - gap*gap
		}
		if best == "" || change < least {
			best, least = part.name, change
		}
	}
	return best
}

// dimensionsLabelled returns the dimensions that have labels.
func (l *Labels) dimensionsLabelled() []string {
	var found []string
	for _, dimension := range evidence.Dimensions() {
		if pass, fail := l.Count(dimension); pass+fail > 0 {
			found = append(found, dimension)
		}
	}
	return found
}
