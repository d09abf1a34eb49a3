package judge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// calibrationFile is beside labels.yaml and holds the measurements on the test split.
const calibrationFile = "calibration.jsonl"

// aggregation names the rule that turns votes into a verdict. Another rule is another judge.
const aggregation = "majority of at least two votes, abstentions out/1"

// statusStale says that a dimension was calibrated with another prompt, other members or other
// labels.
const statusStale = "stale"

// errSealed is returned for a second look at the test split, also by another judge: who changes a
// prompt until the labels like it has chosen by them.
var errSealed = errors.New("the test split was measured already, which another prompt or panel does not undo; a " +
	"second use needs --again, and then it no longer corrects any rate: label runs of another run directory")

// panelID identifies what a calibration is about: dimension, prompt, members, aggregation.
func (d *deriver) panelID(dimension string) string {
	parts := []string{dimension, d.frames.of(kindSingle, dimension).hash, aggregation}
	for i := range d.members {
		m := &d.members[i]
		if m.isActive() && d.selected(dimension, m.member.Name) {
			parts = append(parts, m.member.Protocol+" "+m.member.Model)
		}
	}
	slices.Sort(parts[3:])
	return digest(strings.Join(parts, "\n"))[:16]
}

// Measurement compares a panel's verdicts with those of people.
type Measurement struct {
	ID        string `json:"id"`
	Dimension string `json:"dimension"`
	Split     string `json:"split"`
	AtMs      int64  `json:"atMs"`
	// PerArm counts the panel's hits for each arm that has labels.
	PerArm []stats.Calibration `json:"perArm"`
	// Unjudged counts labels on runs without a verdict of the panel.
	Unjudged    int    `json:"unjudged"`
	LabelDesign string `json:"labelDesign"`
	// LabelsDigest identifies the labels of the split.
	LabelsDigest string `json:"labelsDigest,omitempty"`
	// Carried says that it was made in another run directory.
	Carried bool `json:"carried,omitempty"`
	// Again says that it was a second measurement on the test split, which invalidates both.
	Again bool `json:"again,omitempty"`
	// Seal is the digest of the other fields: counts that were changed afterwards correct nothing.
	Seal string `json:"seal,omitempty"`
}

// sealOf returns the seal that a measurement should have.
func (m Measurement) sealOf() string {
	m.Seal = ""
	return digestOf(m)
}

// digestOf returns the digest of a value of texts and numbers.
func digestOf(value any) string {
	text, _ := jsonenc.Marshal(value) // those always marshal
	return digest(string(text))
}

// checkSeal refuses a measurement that was changed after it was made. Those of earlier versions
// have no seal, and only labels of the same directory can stand for their counts.
func (m Measurement) checkSeal() error {
	if m.Seal == m.sealOf() || m.Seal == "" && !m.Carried {
		return nil
	}
	return fmt.Errorf("the calibration of %s does not fit its seal: it was changed after it was measured; import or "+
		"measure it again", m.Dimension)
}

// Pooled returns the calibration over all arms.
func (m Measurement) Pooled() stats.Calibration {
	var sum stats.Calibration
	for _, c := range m.PerArm {
		sum.TP, sum.M1, sum.TN, sum.M0 = sum.TP+c.TP, sum.M1+c.M1, sum.TN+c.TN, sum.M0+c.M0
	}
	return sum
}

// Agreement returns Cohen's kappa and Gwet's AC1 of panel and people, or an error where every
// rating is the same. Neither replaces TPR and TNR.
func (m Measurement) Agreement() (kappa, ac1 stats.Kappa, err error) {
	c := m.Pooled()
	table := [][]int{{c.TP, c.M1 - c.TP}, {c.M0 - c.TN, c.TN}}
	if kappa, err = stats.CohenKappa(table); err == nil {
		ac1, err = stats.GwetAC1(table)
	}
	return kappa, ac1, err
}

// Measure compares the panel with the labels of a split. The test split is sealed: it is measured
// once per dimension, whatever the prompt or the panel. With again it is measured once more, and
// corrects nothing from then on.
func (l *Labels) Measure(result *Result, dimension, split string, again bool, nowMs int64) (Measurement, error) {
	m, err := l.measure(result, dimension, split)
	if err != nil {
		return Measurement{}, err
	}
	m.AtMs = nowMs
	if c := m.Pooled(); c.M1+c.M0 == 0 {
		return Measurement{}, fmt.Errorf("no judged run has a label of %s in the split %s: label runs, then split them",
			dimension, split)
	}
	if split != SplitTest {
		return m, nil
	}
	sealed := []Measurement{m}
	err = l.seal(sealed, again)
	return sealed[0], err
}

func (l *Labels) measure(result *Result, dimension, split string) (Measurement, error) {
	m := Measurement{
		ID:           result.PanelIDs[dimension],
		Dimension:    dimension,
		Split:        split,
		PerArm:       []stats.Calibration{},
		LabelDesign:  l.design(),
		LabelsDigest: l.digestOf(dimension, split),
	}
	matched, err := l.Match(dimension, split, result.judged(dimension), nil)
	if err != nil {
		return m, err
	}
	m.Unjudged = matched.Unjudged
	known, err := matched.Errors()
	m.PerArm = append(m.PerArm, known.PerArm...)
	return m, err
}

// verdicts returns the panel's verdicts on a dimension, by run.
func (r *Result) verdicts(dimension string) map[ledger.Cell]PanelVerdict {
	found := map[ledger.Cell]PanelVerdict{}
	for _, c := range r.Cells {
		if verdict, asked := c.Dimensions[dimension]; asked {
			found[c.Cell] = verdict
		}
	}
	return found
}

func (r *Result) judged(dimension string) Judged {
	judged := Judged{}
	for cell, verdict := range r.verdicts(dimension) {
		if verdict.Result != nil {
			judged[cell] = *verdict.Result == Pass
		}
	}
	return judged
}

// seal keeps measurements of the test split.
func (l *Labels) seal(made []Measurement, again bool) error {
	file, err := os.OpenFile(l.calibrationPath(), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("keep the measurement: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := jsonlines.Lock(file); err != nil {
		return fmt.Errorf("keep the measurement in %s: %w", l.calibrationPath(), err)
	}
	before, err := readMeasurements(file)
	if err != nil {
		return err
	}
	for i := range made {
		m := &made[i]
		m.Again = slices.ContainsFunc(before, func(b Measurement) bool { return b.Dimension == m.Dimension })
		if m.Again && !again {
			return fmt.Errorf("%s (%s): %w", m.Dimension, m.ID, errSealed)
		}
	}
	for i := range made {
		made[i].Seal = made[i].sealOf()
		line, err := jsonenc.Marshal(&made[i])
		if err == nil {
			err = jsonlines.Append(file, line)
		}
		if err != nil {
			return fmt.Errorf("keep the measurement in %s: %w", l.calibrationPath(), err)
		}
	}
	return nil
}

func (l *Labels) calibrationPath() string {
	return filepath.Join(filepath.Dir(l.path), calibrationFile)
}

func (l *Labels) measurements() ([]Measurement, error) {
	file, err := os.Open(l.calibrationPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read calibration: %w", err)
	}
	defer func() { _ = file.Close() }()
	return readMeasurements(file)
}

// readMeasurements leaves out lines that are not measurements, such as one torn by a crash.
func readMeasurements(r io.Reader) ([]Measurement, error) {
	var found []Measurement
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m Measurement
		if json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &m) != nil || m.ID == "" {
			continue
		}
		if err := m.checkSeal(); err != nil {
			return nil, fmt.Errorf("%s: %w", calibrationFile, err)
		}
		found = append(found, m)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", calibrationFile, err)
	}
	return found, nil
}

// Calibration is what is known about the errors of a panel in one dimension.
type Calibration struct {
	ID        string `json:"id"`
	Dimension string `json:"dimension"`
	// Status is ok, judge-uninformative, stale or uncalibrated; Reason says why it is not ok.
	Status string   `json:"status"`
	Reason string   `json:"reason,omitempty"`
	TPR    *float64 `json:"tpr"`
	TNR    *float64 `json:"tnr"`
	M1     int      `json:"m1"`
	M0     int      `json:"m0"`
	// LabelDesign says how the labelled runs were chosen, Carried that they are in another run
	// directory.
	LabelDesign string `json:"labelDesign"`
	Carried     bool   `json:"carried,omitempty"`
	Errors
	// Labels counts those of people, in all splits.
	Labels int `json:"labels"`
}

// Valid reports whether rates may be corrected by it.
func (c *Calibration) Valid() bool { return c.Status == stats.StatusOK }

// Calibrations returns, for every dimension, what is known about the errors of the panel that made
// a result.
func (l *Labels) Calibrations(result *Result) ([]Calibration, error) {
	kept, err := l.measurements()
	if err != nil {
		return nil, err
	}
	var found []Calibration
	for _, dimension := range evidence.Dimensions() {
		if id, judged := result.PanelIDs[dimension]; judged {
			calibration, err := l.calibration(kept, dimension, id)
			if err != nil {
				return nil, err
			}
			found = append(found, calibration)
		}
	}
	return found, nil
}

func (l *Labels) calibration(kept []Measurement, dimension, id string) (Calibration, error) {
	pass, fail := l.Count(dimension)
	c := Calibration{
		ID:          id,
		Dimension:   dimension,
		Status:      stats.StatusUncalibrated,
		LabelDesign: l.design(),
		Errors:      Errors{PerArm: []stats.Calibration{}},
		Labels:      pass + fail,
	}
	looks := slices.DeleteFunc(slices.Clone(kept), func(m Measurement) bool { return m.Dimension != dimension })
	switch {
	case len(looks) > 1:
		c.Reason = fmt.Sprintf("the test split was used %d times", len(looks))
		return c, nil
	case len(looks) == 0:
		c.Reason = "not measured on the test split"
		return c, nil
	case looks[0].ID != id:
		c.Status, c.Reason = statusStale, "measured with another prompt or other members"
		return c, nil
	case !looks[0].Carried && looks[0].LabelsDigest != "" && looks[0].LabelsDigest != l.digestOf(dimension, SplitTest):
		c.Status, c.Reason = statusStale, "the labels changed after the measurement"
		return c, nil
	}
	c.LabelDesign, c.Carried, c.PerArm = looks[0].LabelDesign, looks[0].Carried, looks[0].PerArm
	c.Pooled = looks[0].Pooled()
	c.M1, c.M0 = c.Pooled.M1, c.Pooled.M0
	if c.M1 == 0 || c.M0 == 0 {
		c.Reason = "the test split lacks labels of one kind"
		return c, nil
	}
	tpr, tnr := c.Pooled.TPR(), c.Pooled.TNR()
	c.TPR, c.TNR, c.Status = &tpr, &tnr, stats.StatusOK
	if !c.Pooled.Informative(stats.DefaultLevel) {
		c.Status, c.Reason = stats.StatusUninformative, "the labels do not show that the panel is better than a "+
			"coin flip"
	}
	var err error
	if c.Homogeneity, err = stats.LabelledHomogeneity(c.PerArm); err != nil {
		return c, fmt.Errorf("labels of %s: %w", dimension, err)
	}
	return c, nil
}
