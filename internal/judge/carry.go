package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// carriedVersion is the version of the file that carries a calibration.
const carriedVersion = 1

// Carried is a file that carries what labels say about a panel to another run directory. It holds
// there for the same panel with the same prompt on the same tasks, and for no others.
type Carried struct {
	Version int `json:"version"`
	// Population identifies the tasks, Arms the arms that have labels, by name.
	Population   string            `json:"population"`
	Arms         map[string]string `json:"arms"`
	Measurements []Measurement     `json:"measurements"`
	// Seal is the digest of the other fields, the digests of the labels included.
	Seal string `json:"seal"`
}

// sealOf returns the seal that the file should have.
func (c Carried) sealOf() string {
	c.Seal = ""
	return digestOf(c)
}

// population identifies the tasks that a panel judged, by their names and texts.
func populationOf(subjects []Subject) string {
	var tasks []string
	for i := range subjects {
		tasks = append(tasks, fmt.Sprintf("%q %q", subjects[i].Task.ID, subjects[i].Task.Prompt))
	}
	slices.Sort(tasks)
	return digest(strings.Join(slices.Compact(tasks), "\n"))
}

func armsOf(subjects []Subject) map[string]string {
	arms := map[string]string{}
	for i := range subjects {
		arms[subjects[i].Run.Key.Arm] = subjects[i].ArmHash
	}
	return arms
}

// Carry returns the measurements on the test split that correct rates here.
func (l *Labels) Carry(result *Result, subjects []Subject) (*Carried, error) {
	c := &Carried{
		Version:      carriedVersion,
		Population:   populationOf(subjects),
		Arms:         armsOf(subjects),
		Measurements: []Measurement{},
	}
	known, err := l.Calibrations(result)
	if err != nil {
		return nil, err
	}
	kept, err := l.measurements()
	if err != nil {
		return nil, err
	}
	var why []string
	for i := range known {
		if !known[i].Valid() {
			why = append(why, fmt.Sprintf("%s is %s (%s)", known[i].Dimension, known[i].Status, known[i].Reason))
			continue
		}
		for _, m := range kept {
			if m.Dimension == known[i].Dimension {
				c.Measurements = append(c.Measurements, m)
			}
		}
	}
	if len(c.Measurements) == 0 {
		return nil, fmt.Errorf("there is no valid calibration: %s; fit versus calibrate measure makes one",
			strings.Join(why, ", "))
	}
	c.Seal = c.sealOf()
	return c, nil
}

// ReadCarried reads a file that Carry made.
func ReadCarried(data []byte) (*Carried, error) {
	var c Carried
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("not a calibration: %w; fit versus calibrate export makes one", err)
	}
	if c.Version != carriedVersion || len(c.Measurements) == 0 {
		return nil, errors.New("not a calibration of this version; fit versus calibrate export makes one")
	}
	if c.Seal != c.sealOf() {
		return nil, errors.New("the calibration does not fit its seal: it was changed after it was exported; export " +
			"it again with fit versus calibrate export")
	}
	for i := range c.Measurements {
		for _, one := range c.Measurements[i].PerArm {
			if one.TP < 0 || one.TN < 0 || one.TP > one.M1 || one.TN > one.M0 {
				return nil, fmt.Errorf("the counts of %s contradict each other", c.Measurements[i].Dimension)
			}
		}
	}
	return &c, nil
}

// Accept keeps measurements that were made in another run directory. All or none are accepted; each
// uses up the test split here, too.
func (l *Labels) Accept(c *Carried, result *Result, subjects []Subject, nowMs int64) error {
	if c.Population != populationOf(subjects) {
		return errors.New("the calibration is about other tasks: label runs of this directory")
	}
	arms := armsOf(subjects)
	for i := range c.Measurements {
		m := &c.Measurements[i]
		if id := result.PanelIDs[m.Dimension]; id != m.ID {
			return fmt.Errorf("the calibration of %s is about another prompt or panel (%s, here %s): label runs of "+
				"this directory", m.Dimension, m.ID, orNobody(id))
		}
		m.Carried, m.AtMs = true, nowMs
		for j := range m.PerArm {
			if arm := m.PerArm[j].Agent; arms[arm] == "" || arms[arm] != c.Arms[arm] {
				m.PerArm[j].Agent = arm + " (elsewhere)" // no arm of this directory
			}
		}
	}
	return l.seal(c.Measurements, false)
}

func orNobody(id string) string {
	if id == "" {
		return "nobody was asked"
	}
	return id
}
