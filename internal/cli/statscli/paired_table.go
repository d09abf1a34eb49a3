package statscli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/stats"
)

// pairedTable is the parsed file: two named columns of outcomes.
type pairedTable struct {
	names [2]string
	tasks []pairedRow
}

type pairedRow struct {
	task, cluster, stratum string
	values                 [2][]float64
}

// columnsOf says which cell of a row is what; -1 is absent.
type columnsOf struct {
	task, cluster, stratum int
	values                 []int
}

func newPairedTable(rows []line) (pairedTable, error) {
	table := pairedTable{names: [2]string{"the first column", "the second column"}}
	for _, cell := range rows[0].cells {
		if slices.Contains([]string{"arm", "agent", "model", "variant"}, strings.ToLower(cell)) {
			return pairedTable{}, fmt.Errorf("a table with a column %s has a row for each run, and here each has a "+
				"task and the outcomes of both sides: fit-benchmark compare reads it", cell)
		}
	}
	columns, header, err := findColumns(rows)
	if err != nil {
		return pairedTable{}, err
	}
	if header {
		for i, column := range columns.values {
			if name := rows[0].cells[column]; name != "" {
				table.names[i] = name
			}
		}
		rows = rows[1:]
	}
	position := map[string]int{}
	for _, row := range rows {
		parsed, err := columns.parse(row)
		if err != nil {
			return pairedTable{}, fmt.Errorf("line %d: %w", row.number, err)
		}
		at, seen := position[parsed.task]
		if !seen || parsed.task == "" {
			position[parsed.task] = len(table.tasks)
			table.tasks = append(table.tasks, parsed)
			continue
		}
		same := &table.tasks[at]
		if same.cluster != parsed.cluster || same.stratum != parsed.stratum {
			return pairedTable{}, fmt.Errorf("line %d: task %q has another cluster or stratum than before", row.number,
				parsed.task)
		}
		for i := range parsed.values {
			same.values[i] = append(same.values[i], parsed.values[i]...)
		}
	}
	if len(table.tasks) == 0 {
		return pairedTable{}, fmt.Errorf("a header but no rows")
	}
	return table, nil
}

func findColumns(rows []line) (columnsOf, bool, error) {
	columns := columnsOf{task: -1, cluster: -1, stratum: -1}
	first := rows[0].cells
	header := isHeader(first)
	for i, cell := range first {
		if !header {
			columns.values = append(columns.values, i)
			continue
		}
		switch strings.ToLower(cell) {
		case "task", "tasks", "taskid", "task_id", "name", "id":
			columns.task = i
		case "cluster", "repo":
			columns.cluster = i
		case "stratum", "strata":
			columns.stratum = i
		default:
			columns.values = append(columns.values, i)
		}
	}
	if len(columns.values) == 3 && columns.task < 0 {
		columns.task, columns.values = columns.values[0], columns.values[1:]
	}
	if len(columns.values) != 2 {
		return columns, header, fmt.Errorf("line %d: the columns of outcomes must be two (and optionally one with the "+
			"name of the task), not %d", rows[0].number, len(columns.values))
	}
	return columns, header, nil
}

// isHeader: the last two cells of a row of data are always outcomes.
func isHeader(cells []string) bool {
	for _, cell := range cells[max(0, len(cells)-2):] {
		if _, err := outcomes(cell); err == nil {
			return false
		}
	}
	return true
}

func (c columnsOf) parse(row line) (pairedRow, error) {
	cell := func(column int) string {
		if column < 0 || column >= len(row.cells) {
			return ""
		}
		return row.cells[column]
	}
	wanted := slices.Max(append(slices.Clone(c.values), c.task, c.cluster, c.stratum)) + 1
	if len(row.cells) != wanted {
		return pairedRow{}, fmt.Errorf("columns must be %d, not %d", wanted, len(row.cells))
	}
	parsed := pairedRow{task: cell(c.task), cluster: cell(c.cluster), stratum: cell(c.stratum)}
	for i, column := range c.values {
		values, err := outcomes(cell(column))
		if err != nil {
			return pairedRow{}, err
		}
		parsed.values[i] = values
	}
	return parsed, nil
}

// outcomes reads the runs in one cell: "1", "1/0/1", "pass fail".
func outcomes(cell string) ([]float64, error) {
	if isMissing(cell) {
		return nil, nil
	}
	var values []float64
	for _, part := range strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune("/|; ", r) }) {
		value, err := number(part)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func taskName(name string, i int) string {
	if name == "" {
		return fmt.Sprintf("task %d", i+1)
	}
	return fmt.Sprintf("task %q", name)
}

// arms assigns the columns: the second is the baseline unless the flag or the header of the first
// says so.
func (t pairedTable) arms(baseline string) (pairs []stats.Pair, candidateName, baselineName string) {
	candidateColumn := 0
	if baseline == "first" || (baseline == "" &&
		slices.Contains([]string{"baseline", "base", "before", "old", "control"}, strings.ToLower(t.names[0]))) {
		candidateColumn = 1
	}
	for _, row := range t.tasks {
		pairs = append(pairs, stats.Pair{
			Task:      row.task,
			Cluster:   row.cluster,
			Stratum:   row.stratum,
			Candidate: row.values[candidateColumn],
			Baseline:  row.values[1-candidateColumn],
		})
	}
	return pairs, t.names[candidateColumn], t.names[1-candidateColumn]
}
