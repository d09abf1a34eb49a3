package statscli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/stats"
)

// agreeOptions are the flags of `fit stats agree`.
type agreeOptions struct {
	Counts   bool
	Header   string
	Names    string
	Positive string
}

// agreeResult is the JSON of `fit stats agree`; coefficients that the data do not define are null,
// and Notes say why.
type agreeResult struct {
	Items      int      `json:"items"`
	Raters     int      `json:"raters"`
	Categories []string `json:"categories"`
	// Observed is the share of agreeing pairs of ratings, Expected the one κ expects by chance.
	Observed *float64 `json:"observed"`
	Expected *float64 `json:"expected"`
	// Kappa (Cohen), its standard error, AC1, TPR and TNR exist for two raters only.
	Kappa   *float64 `json:"kappa"`
	KappaSE *float64 `json:"kappaSE"`
	AC1     *float64 `json:"ac1"`
	Fleiss  *float64 `json:"fleiss"`
	Alpha   *float64 `json:"alpha"`
	TPR     *float64 `json:"tpr"`
	TNR     *float64 `json:"tnr"`
	Notes   []string `json:"notes,omitempty"`
}

func newAgree(con *console.Console, options *statsOptions) *cobra.Command {
	var flags agreeOptions
	cmd := &cobra.Command{
		Use:   "agree FILE",
		Short: "Report how well raters agree: Cohen, Fleiss, AC1, Krippendorff, TPR and TNR",
		Long: `Reads a table of ratings ("-" is standard input): one row per item, one column per
rater, cells separated by commas, tabs, semicolons or spaces; empty cells, - and NA
are missing. With --counts the columns are categories and the cells say how many
raters chose each.

A first row of names and a first column of item names are recognised where they
cannot be ratings; --header and --names set it explicitly.

  kappa   Cohen: agreement of two raters beyond chance; low when one answer dominates
  ac1     Gwet: the same, steady when one answer dominates
  fleiss  several raters who all rated everything
  alpha   Krippendorff: any number of raters, ratings may be missing
  tpr/tnr two raters with pass and fail: how the second treats what the first passed
          and failed. Never report kappa without them.`,
		Example: `  fit stats agree ratings.csv
  printf 'human,judge\npass,pass\nfail,pass\nfail,fail\n' | fit stats agree - --format json`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := agree(con, args[0], flags)
			if err != nil {
				return err
			}
			return emit(con, options, result, func(w io.Writer) { writeAgree(w, result) })
		},
	}
	cmd.Flags().BoolVar(&flags.Counts, "counts", false, "columns are categories, cells are numbers of raters")
	cmd.Flags().StringVar(&flags.Header, "header", "auto", "first row holds names: yes, no or auto")
	cmd.Flags().StringVar(&flags.Names, "names", "auto", "first column holds item names: yes, no or auto")
	cmd.Flags().StringVar(&flags.Positive, "positive", "",
		"category that counts as pass for TPR and TNR (default pass, 1, true or yes)")
	return cmd
}

func agree(con *console.Console, path string, flags agreeOptions) (agreeResult, error) {
	for name, value := range map[string]string{"header": flags.Header, "names": flags.Names} {
		if !slices.Contains([]string{"yes", "no", "auto"}, value) {
			return agreeResult{}, console.Usagef("agree: --%s must be yes, no or auto, not %q", name, value)
		}
	}
	rows, err := readTable(con, path)
	if err != nil {
		return agreeResult{}, err
	}
	table, err := newRatings(rows, flags)
	if err != nil {
		return agreeResult{}, console.Usagef("%s: %w", path, err)
	}
	return table.measure(flags.Positive), nil
}

// ratings is the parsed file: how many raters put each item into each category, and for two raters
// who said what.
type ratings struct {
	categories []string
	raters     int
	counts     [][]int
	// pairs is the square table of two raters; nil for more, or for counts.
	pairs [][]int
}

func newRatings(rows []line, flags agreeOptions) (ratings, error) {
	for _, row := range rows {
		if len(row.cells) != len(rows[0].cells) {
			return ratings{}, fmt.Errorf("line %d: columns must be %d, as in the first row, not %d", row.number,
				len(rows[0].cells), len(row.cells))
		}
	}
	header := flags.Header == "yes" || (flags.Header == "auto" && ratingsHeader(rows, flags.Counts))
	var names []string
	if header {
		names, rows = rows[0].cells, rows[1:]
	}
	if len(rows) == 0 {
		return ratings{}, fmt.Errorf("a header but no rows")
	}
	if flags.Names == "yes" || (flags.Names == "auto" && itemNames(rows, names, flags.Counts)) {
		for i := range rows {
			rows[i].cells = rows[i].cells[1:]
		}
		if names != nil {
			names = names[1:]
		}
	}
	if len(rows[0].cells) < 2 {
		return ratings{}, fmt.Errorf("%d column(s) of ratings, need at least 2", len(rows[0].cells))
	}
	if flags.Counts {
		return countedRatings(rows, names)
	}
	if err := checkRatings(rows); err != nil {
		return ratings{}, err
	}
	return listedRatings(rows), nil
}

// checkRatings refuses what a program writes when it had no rating to write: as a category of its
// own it would count as agreement.
func checkRatings(rows []line) error {
	for _, row := range rows {
		for _, cell := range row.cells {
			if value, err := strconv.ParseFloat(cell, 64); err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
				return fmt.Errorf("line %d: %s is not a rating; leave the cell empty if there is none", row.number,
					cell)
			}
		}
	}
	return nil
}

// ratingsHeader: a first row none of whose cells is a number, a word for pass or fail, or a rating
// below it. Counts are numbers, so words are a header.
func ratingsHeader(rows []line, counts bool) bool {
	if len(rows) < 2 {
		return headsNames(rows[0].cells[0])
	}
	if counts {
		_, err := strconv.Atoi(rows[0].cells[len(rows[0].cells)-1])
		return err != nil
	}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		for _, cell := range row.cells {
			seen[cell] = true
		}
	}
	for _, cell := range rows[0].cells {
		if _, err := number(cell); err == nil || seen[cell] || isMissing(cell) {
			return false
		}
	}
	return true
}

// itemNames: a first column that is headed like one, or whose values are all different and occur
// nowhere else. For counts, one that holds no numbers.
func itemNames(rows []line, names []string, counts bool) bool {
	if names != nil && headsNames(names[0]) {
		return true
	}
	if counts {
		_, err := strconv.Atoi(rows[0].cells[0])
		return err != nil
	}
	if len(rows[0].cells) < 3 || len(rows) < 3 {
		return false
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row.cells[0]] {
			return false
		}
		seen[row.cells[0]] = true
	}
	for _, row := range rows {
		for _, cell := range row.cells[1:] {
			if seen[cell] {
				return false
			}
		}
	}
	return true
}

func headsNames(cell string) bool {
	return slices.Contains([]string{"item", "items", "task", "name", "id"}, strings.ToLower(cell))
}

func countedRatings(rows []line, names []string) (ratings, error) {
	table := ratings{categories: names}
	for i := range rows[0].cells {
		if names == nil {
			table.categories = append(table.categories, fmt.Sprintf("category %d", i+1))
		}
	}
	for _, row := range rows {
		counts, raters := make([]int, len(row.cells)), 0
		for i, cell := range row.cells {
			count, err := strconv.Atoi(cell)
			if err != nil || count < 0 {
				return ratings{}, fmt.Errorf("line %d: %q is not a number of raters", row.number, cell)
			}
			counts[i] = count
			raters += count
		}
		table.raters = max(table.raters, raters)
		table.counts = append(table.counts, counts)
	}
	return table, nil
}

func listedRatings(rows []line) ratings {
	table := ratings{raters: len(rows[0].cells)}
	for _, row := range rows {
		for _, cell := range row.cells {
			if !isMissing(cell) && !slices.Contains(table.categories, cell) {
				table.categories = append(table.categories, cell)
			}
		}
	}
	slices.Sort(table.categories)
	if table.raters == 2 {
		table.pairs = make([][]int, len(table.categories))
		for i := range table.pairs {
			table.pairs[i] = make([]int, len(table.categories))
		}
	}
	for _, row := range rows {
		counts := make([]int, len(table.categories))
		var chosen []int
		for _, cell := range row.cells {
			if category, ok := slices.BinarySearch(table.categories, cell); ok {
				counts[category]++
				chosen = append(chosen, category)
			}
		}
		table.counts = append(table.counts, counts)
		if table.pairs != nil && len(chosen) == 2 {
			table.pairs[chosen[0]][chosen[1]]++
		}
	}
	return table
}

func (r ratings) measure(positive string) agreeResult {
	result := agreeResult{Items: len(r.counts), Raters: r.raters, Categories: r.categories}
	note := func(name string, err error) {
		result.Notes = append(result.Notes, fmt.Sprintf("%s: %v", name, err))
	}
	if alpha, err := stats.KrippendorffAlpha(r.counts); err != nil {
		note("alpha", err)
	} else {
		result.Alpha, result.Observed = &alpha.Value, &alpha.Observed
	}
	if fleiss, err := stats.FleissKappa(r.counts); err != nil {
		note("fleiss", err)
	} else {
		result.Fleiss, result.Observed, result.Expected = &fleiss.Value, &fleiss.Observed, &fleiss.Expected
	}
	if r.pairs == nil {
		return result
	}
	if kappa, err := stats.CohenKappa(r.pairs); err != nil {
		note("kappa", err)
	} else {
		result.Kappa, result.KappaSE = &kappa.Value, &kappa.SE
		result.Observed, result.Expected = &kappa.Observed, &kappa.Expected
	}
	if ac1, err := stats.GwetAC1(r.pairs); err != nil {
		note("ac1", err)
	} else {
		result.AC1 = &ac1.Value
	}
	result.TPR, result.TNR = r.errorRates(positive)
	return result
}

// errorRates takes the first rater as the truth; nil where the categories are not a pass and a
// fail.
func (r ratings) errorRates(positive string) (tpr, tnr *float64) {
	if len(r.categories) != 2 {
		return nil, nil
	}
	pass := slices.IndexFunc(r.categories, func(category string) bool {
		if positive != "" {
			return category == positive
		}
		return slices.Contains([]string{"pass", "1", "true", "yes"}, strings.ToLower(category))
	})
	if pass < 0 {
		return nil, nil
	}
	rate := func(category int) *float64 {
		total := r.pairs[category][0] + r.pairs[category][1]
		if total == 0 {
			return nil
		}
		return new(float64(r.pairs[category][category]) / float64(total))
	}
	return rate(pass), rate(1 - pass)
}

func writeAgree(w io.Writer, result agreeResult) {
	fmt.Fprintf(w, "%s, %s, categories %s\n", report.Count(result.Items, "item"),
		report.Count(result.Raters, "rater"),
		strings.Join(result.Categories, ", "))
	for _, row := range []struct {
		name  string
		value *float64
	}{
		{"observed agreement", result.Observed},
		{"Cohen's kappa", result.Kappa},
		{"  standard error", result.KappaSE},
		{"Gwet's AC1", result.AC1},
		{"Fleiss' kappa", result.Fleiss},
		{"Krippendorff's alpha", result.Alpha},
		{"TPR of the second", result.TPR},
		{"TNR of the second", result.TNR},
	} {
		if row.value != nil {
			fmt.Fprintf(w, "%-21s %.6f\n", row.name, *row.value)
		}
	}
	warn(w, result.Notes)
}
