package judge

import (
	"iter"
)

func trialQuestions(d *deriver) iter.Seq[*question] {
	return func(yield func(*question) bool) {
		for _, one := range trials(d.frames, d.subjects) {
			if !yield(one.question) {
				return
			}
		}
	}
}

func singleQuestions(d *deriver) iter.Seq[*question] {
	return func(yield func(*question) bool) {
		for i := range d.subjects {
			subject := &d.subjects[i]
			v := newView(subject)
			for _, dimension := range d.settings.Dimensions {
				if subject.asked(d.settings.Mode, dimension) &&
					!yield(v.single(d.frames, kindSingle, dimension)) {
					return
				}
			}
		}
	}
}

func pairQuestions(d *deriver) iter.Seq[*question] {
	return func(yield func(*question) bool) {
		cells := make([]CellVerdicts, len(d.subjects))
		if d.settings.Pairwise == PairsTies {
			for i := range cells {
				cells[i] = d.cell(i)
			}
		}
		for _, c := range couples(d.subjects) {
			a, b := newView(&d.subjects[c.a]), newView(&d.subjects[c.b])
			for _, dimension := range d.settings.Dimensions {
				if d.compared(cells, c, dimension) && (!yield(pair(d.frames, dimension, a, b)) ||
					!yield(pair(d.frames, dimension, b, a))) {
					return
				}
			}
		}
	}
}
