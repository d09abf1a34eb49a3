package query

const gapCost = 2

func pairCost(a, b *Action) int {
	switch {
	case a.same(b):
		return 0
	case a.Kind == b.Kind:
		return 1
	}
	return 2*gapCost + 1 // more than leaving one out and adding the other
}

// appendAlignment finds the cheapest way from one sequence to the other. Leaving out or adding an
// action costs 2, changing its target 1, and actions of different kinds are never paired.
// Hirschberg's method: time in proportion to the product of the lengths, memory to their sum.
func appendAlignment(steps []AlignedStep, a, b []Action) []AlignedStep {
	for len(a) > 0 && len(b) > 0 && a[0].same(&b[0]) { // equal beginnings need no search
		steps = append(steps, AlignedStep{OpMatch, &a[0], &b[0]})
		a, b = a[1:], b[1:]
	}
	switch {
	case len(a) == 0 || len(b) == 0:
		return appendRest(steps, a, b)
	case len(a) == 1:
		return appendOne(steps, &a[0], b)
	}
	middle := len(a) / 2
	forward, backward := costs(a[:middle], b, false), costs(a[middle:], b, true)
	best := 0
	for j := range forward {
		if forward[j]+backward[len(b)-j] < forward[best]+backward[len(b)-best] {
			best = j
		}
	}
	steps = appendAlignment(steps, a[:middle], b[:best])
	return appendAlignment(steps, a[middle:], b[best:])
}

func appendRest(steps []AlignedStep, a, b []Action) []AlignedStep {
	for i := range a {
		steps = append(steps, AlignedStep{opOnlyA, &a[i], nil})
	}
	for i := range b {
		steps = append(steps, AlignedStep{opOnlyB, nil, &b[i]})
	}
	return steps
}

// appendOne aligns a single action.
func appendOne(steps []AlignedStep, a *Action, b []Action) []AlignedStep {
	best := -1
	for j := range b {
		if pairCost(a, &b[j]) <= gapCost && (best < 0 || pairCost(a, &b[j]) < pairCost(a, &b[best])) {
			best = j
		}
	}
	if best < 0 {
		return appendRest(steps, []Action{*a}, b)
	}
	steps = appendRest(steps, nil, b[:best])
	op := opChange
	if a.same(&b[best]) {
		op = OpMatch
	}
	return appendRest(append(steps, AlignedStep{op, a, &b[best]}), nil, b[best+1:])
}

// costs returns the cost of getting from a to every prefix of b; of the reversed sequences if
// reverse is set.
func costs(a, b []Action, reverse bool) []int {
	at := func(list []Action, i int) *Action {
		if reverse {
			return &list[len(list)-1-i]
		}
		return &list[i]
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j * gapCost
	}
	for i := range a {
		diagonal := row[0]
		row[0] = (i + 1) * gapCost
		for j := range b {
			cost := min(row[j]+gapCost, row[j+1]+gapCost, diagonal+pairCost(at(a, i), at(b, j)))
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row
}
