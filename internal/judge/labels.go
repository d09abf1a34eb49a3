package judge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
)

// The parts that labels are split into. The train split is for examples in prompts, the dev split
// for choosing, the test split for measuring, once.
const (
	splitTrain = "train"
	SplitDev   = "dev"
	SplitTest  = "test"
)

// Labels is labels.yaml: people's verdicts on judged runs, dimension by dimension. The file may
// hold labels without a dimension too, which are about the judge of a benchmark.
type Labels struct {
	path   string
	source []byte
	file   report.Labels
}

// label is one person's verdict on one dimension of one run.
type label = report.RunLabel

func cellOf(l label) cell { return cell{l.Task, l.Arm, l.Run} }

const (
	humanPass = "pass"
	humanFail = "fail"
)

// LoadLabels reads labels.yaml; a missing file holds none. Mistakes are reported with file, line
// and column.
func LoadLabels(path string) (*Labels, error) {
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Labels{path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	file, err := parseLabels(path, source)
	if err != nil {
		return nil, err
	}
	return &Labels{path: path, source: source, file: file}, nil
}

func parseLabels(path string, source []byte) (report.Labels, error) {
	file, err := report.ParseLabels(path, source)
	if err != nil {
		return report.Labels{}, err
	}
	for i, l := range file.Labels {
		if l.Dimension != "" && l.Arm == "" {
			return report.Labels{}, errorAt(path, source, i, "a label of a dimension needs its arm")
		}
	}
	return *file, nil
}

// Count returns the number of labels of a dimension.
func (l *Labels) Count(dimension string) (pass, fail int) {
	for _, one := range l.file.Labels {
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

	cell cell
}

// Next returns a run that has no label in a dimension yet, in an order that the seed decides.
func (l *Labels) Next(subjects []Subject, settings Settings, dimension string, seed uint64) (Item, bool) {
	settings = settings.withDefaults()
	labelled := map[cell]bool{}
	for _, one := range l.file.Labels {
		if one.Dimension == dimension {
			labelled[cellOf(one)] = true
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
	human := humanFail
	if pass {
		human = humanPass
	}
	added := label{
		Task:      item.cell.task,
		Arm:       item.cell.arm,
		Run:       item.cell.run,
		Dimension: item.Dimension,
		Human:     human,
	}
	// A line at the end keeps what people wrote; a file of another form is rewritten.
	source := append(slices.Clone(l.source), []byte(lineOf(added))...)
	file, err := parseLabels(l.path, source)
	if err == nil && len(file.Labels) == len(l.file.Labels)+1 {
		return l.write(source, file)
	}
	file = l.file
	file.Labels = append(slices.Clone(file.Labels), added)
	return l.rewrite(file)
}

// rewrite writes the whole file anew.
func (l *Labels) rewrite(file report.Labels) error {
	source := textOf(file, l.source)
	if _, err := parseLabels(l.path, source); err != nil {
		return fmt.Errorf("write labels: %w", err)
	}
	return l.write(source, file)
}

func (l *Labels) write(source []byte, file report.Labels) error {
	if err := atomicfile.WriteSynced(l.path, 0o644, source); err != nil {
		return fmt.Errorf("write labels: %w", err)
	}
	l.source, l.file = source, file
	return nil
}

// lineOf returns a label as a line of the file.
func lineOf(l label) string {
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

// textOf returns the whole file, with the comments that the old one began with.
func textOf(f report.Labels, old []byte) []byte {
	var b strings.Builder
	for line := range strings.Lines(string(old)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		b.WriteString(line)
	}
	if f.Design != "" {
		b.WriteString("design: " + f.Design + "\n")
	}
	if len(f.Judge.Digests) > 0 {
		b.WriteString("judge:\n  digests:\n")
		for _, one := range f.Judge.Digests {
			b.WriteString("    - " + jsonenc.String(one) + "\n")
		}
	}
	b.WriteString("labels:\n")
	for _, one := range f.Labels {
		b.WriteString(lineOf(one))
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
	for _, one := range l.file.Labels {
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
	for _, one := range l.file.Labels {
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
	file := l.file
	file.Labels = slices.Clone(file.Labels)
	changed := 0
	for i, one := range file.Labels {
		if one.Dimension != "" && one.Split == "" {
			file.Labels[i].Split = assigned[clusterOf(one)]
			changed++
		}
	}
	if changed == 0 {
		return 0, nil
	}
	return changed, l.rewrite(file)
}

func plus(count [2]float64, one label) [2]float64 {
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
