package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every test here proves the sentence about coverage in the documentation of a method: inside the
// region named there it is at least 94% at a nominal level of 95%, or at least the figure given
// there.

func TestCoverageOfProportionIntervals(t *testing.T) {
	for _, n := range []int{5, 10, 15, 20, 30, 50, 100, 200, 500} {
		wide, middle := ratesBetween(.005, .995, .005), ratesBetween(.2, .8, .005)
		if lowest := slices.Min(proportionCoverage(t, MethodClopperPearson, n, wide)); lowest < .95 {
			t.Errorf("Clopper–Pearson at n = %d covers only %.4f somewhere", n, lowest)
		}
		for _, method := range []string{MethodWilson, MethodJeffreys} {
			if mean, _ := moments(proportionCoverage(t, method, n, wide)); mean < .94 {
				t.Errorf("%s at n = %d covers only %.4f on average", method, n, mean)
			}
			lowest := slices.Min(proportionCoverage(t, method, n, middle))
			switch {
			case n >= 200 && lowest < .94:
				t.Errorf("%s at n = %d covers only %.4f at a rate between 20 and 80%%", method, n, lowest)
			case n >= 15 && lowest < .91:
				t.Errorf("%s at n = %d covers only %.4f at a rate between 20 and 80%%", method, n, lowest)
			}
		}
	}
}

func TestCoverageOfBonettPrice(t *testing.T) {
	for _, n := range []int{10, 15, 20, 30, 50, 100} {
		for _, discordant := range []float64{.02, .05, .1, .2, .3, .5, .7, .9} {
			for _, share := range []float64{.5, .6, .75, .9, 1} {
				win, loss := discordant*share, discordant*(1-share)
				coverage := discordantCoverage(n, win, loss, func(b, c int) bool {
					return must[Interval](t)(BonettPrice(b, c, n, .95)).Contains(win - loss)
				})
				floor := .94
				if n < 15 || share == 1 {
					floor = .928
				}
				if coverage < floor {
					t.Errorf("n = %d, %g of the tasks discordant, %g of them won: coverage %.4f", n, discordant, share,
						coverage)
				}
			}
		}
	}
}

func TestCoverageOfOneTasksPassAtK(t *testing.T) {
	rates := ratesBetween(.01, .99, .01)
	for _, n := range []int{5, 10, 20} {
		for _, k := range []int{1, 3, 5} {
			coverage := make([]float64, len(rates))
			for i, rate := range rates {
				best, all := 1-math.Pow(1-rate, float64(k)), math.Pow(rate, float64(k))
				for c, weight := range binomialWeights(n, rate) {
					if must[Interval](t)(PassAtKInterval(n, c, k, .95)).Contains(best) &&
						must[Interval](t)(PassHatKInterval(n, c, k, .95)).Contains(all) {
						coverage[i] += weight
					}
				}
			}
			if mean, _ := moments(coverage); mean < .94 {
				t.Errorf("pass@%d and pass^%d of %d runs cover only %.4f on average", k, k, n, mean)
			}
		}
	}
}

func TestCoverageOfLangReiczigel(t *testing.T) {
	for _, size := range [][3]int{{30, 20, 20}, {60, 40, 40}, {50, 30, 60}} {
		for _, judge := range [][2]float64{{.8, .8}, {.9, .85}, {.95, .9}, {.99, .99}} {
			for _, truth := range []float64{.02, .1, .3, .6, .9, .98} {
				coverage := judgedCoverage(size[0], size[1], size[2], truth, judge[0], judge[1],
					func(k int, c Calibration) (Interval, error) {
						result, err := langReiczigel(float64(k), float64(size[0]), c, .95)
						return result.Interval, err
					})
				if coverage < .94 {
					t.Errorf("n, m1, m0 = %v, judge %v, truth %g: coverage %.4f", size, judge, truth, coverage)
				}
			}
		}
	}
}

func TestCoverageOfPairedCorrectedDifference(t *testing.T) {
	for _, size := range [][2]int{{30, 20}, {50, 50}, {100, 50}} {
		tasks, labels := size[0], size[1]
		for _, rates := range [][2]float64{{.6, .6}, {.7, .5}, {.3, .2}} {
			for _, judge := range [][2]float64{{.9, .85}, {.95, .95}} {
				name := fmt.Sprintf("%d tasks %d labels rates %v judge %v", tasks, labels, rates, judge)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					wantCoverage(t, 4000, .94, rates[0]-rates[1], func(random *rand.Rand) (Interval, error) {
						table := drawJudgedTable(random, tasks, rates, judge, judge)
						calibration := drawCalibration(random, labels, judge)
						return pairedCorrectedDifference(table.FirstOnly, table.SecondOnly, tasks, calibration, .95)
					})
				})
			}
		}
	}
}

func TestCoverageOfPerAgentCorrectedDifference(t *testing.T) {
	for _, size := range [][2]int{{30, 20}, {100, 50}} {
		for _, rates := range [][2]float64{{.6, .6}, {.7, .5}, {.3, .2}} {
			t.Run(fmt.Sprintf("%v rates %v", size, rates), func(t *testing.T) {
				t.Parallel()
				first, second := [2]float64{.95, .80}, [2]float64{.85, .90}
				wantCoverage(t, 4000, .94, rates[0]-rates[1], func(random *rand.Rand) (Interval, error) {
					table := drawJudgedTable(random, size[0], rates, first, second)
					return perAgentCorrectedDifference(table, drawCalibration(random, size[1], first),
						drawCalibration(random, size[1], second), .95)
				})
			})
		}
	}
}

// drawJudgedTable judges both arms on tasks whose difficulty they share.
func drawJudgedTable(random *rand.Rand, tasks int, rates, first, second [2]float64) pairedTable {
	var table pairedTable
	verdict := func(passed bool, judge [2]float64) bool {
		if passed {
			return random.Float64() < judge[0]
		}
		return random.Float64() >= judge[1]
	}
	for range tasks {
		difficulty := random.Float64()
		a, b := verdict(difficulty < rates[0], first), verdict(difficulty < rates[1], second)
		switch {
		case a && b:
			table.Both++
		case a:
			table.FirstOnly++
		case b:
			table.SecondOnly++
		default:
			table.Neither++
		}
	}
	return table
}

func drawCalibration(random *rand.Rand, labels int, judge [2]float64) Calibration {
	calibration := Calibration{M1: labels, M0: labels}
	for range labels {
		calibration.TP += int(coin(random, judge[0]))
		calibration.TN += int(coin(random, judge[1]))
	}
	return calibration
}

func TestCoverageOfPassRates(t *testing.T) {
	for _, cell := range []struct {
		tasks, runs       int
		rate, correlation float64
	}{
		{20, 3, .2, .5},
		{20, 10, .2, .1},
		{20, 5, .5, .5},
		{30, 10, .8, .5},
		{30, 2, .5, .1},
		{50, 3, .1, .5},
		{50, 10, .9, .1},
		{50, 3, .2, .5},
		{100, 5, .1, .5},
		{100, 3, .8, .5},
	} {
		name := fmt.Sprintf("%d tasks × %d runs rate %g correlation %g", cell.tasks, cell.runs, cell.rate,
			cell.correlation)
		draw := func(random *rand.Rand) [][]float64 {
			tasks := make([][]float64, cell.tasks)
			for i := range tasks {
				tasks[i] = runsOf(random, taskRate(random, cell.rate, cell.correlation), cell.runs)
			}
			return tasks
		}
		t.Run("PassRate/"+name, func(t *testing.T) {
			t.Parallel()
			wantCoverage(t, 3000, .94, cell.rate,
				func(random *rand.Rand) (Interval, error) { return PassRate(draw(random), .95) })
		})
		t.Run("TaskMean/"+name, func(t *testing.T) {
			t.Parallel()
			wantCoverage(t, 3000, .94, cell.rate,
				func(random *rand.Rand) (Interval, error) { return TaskMean(taskMeans(draw(random)), .95) })
		})
	}
}

func taskMeans(tasks [][]float64) []float64 {
	means := make([]float64, len(tasks))
	for i, runs := range tasks {
		means[i], _ = moments(runs)
	}
	return means
}

func TestCoverageOfPassAtKOverTasks(t *testing.T) {
	// Rates are uniform over tasks, so pass@k is 1 − 1/(k+1) and pass^k is 1/(k+1).
	for _, tasks := range []int{20, 50} {
		for _, k := range []int{1, 3} {
			draw := func(random *rand.Rand) []Tally {
				tallies := make([]Tally, tasks)
				for i := range tallies {
					tallies[i].N = 10
					rate := random.Float64()
					for range 10 {
						tallies[i].C += int(coin(random, rate))
					}
				}
				return tallies
			}
			t.Run(fmt.Sprintf("%d tasks pass@%d", tasks, k), func(t *testing.T) {
				t.Parallel()
				wantCoverage(t, 3000, .94, 1-1/float64(k+1), func(random *rand.Rand) (Interval, error) {
					summary, err := OverTasks(draw(random), k, .95, PassAtK)
					return summary.Interval, err
				})
			})
			t.Run(fmt.Sprintf("%d tasks pass^%d", tasks, k), func(t *testing.T) {
				t.Parallel()
				wantCoverage(t, 3000, .94, 1/float64(k+1), func(random *rand.Rand) (Interval, error) {
					summary, err := OverTasks(draw(random), k, .95, PassHatK)
					return summary.Interval, err
				})
			})
		}
	}
}

func TestCoverageOfBootstrap(t *testing.T) {
	for _, n := range []int{30, 100} {
		for _, method := range []string{MethodBCa, MethodPercentile} {
			t.Run(fmt.Sprintf("%s n = %d", method, n), func(t *testing.T) {
				t.Parallel()
				floor := .94
				if n < 100 {
					floor = .91
				}
				wantCoverage(t, 1500, floor, 1, func(random *rand.Rand) (Interval, error) {
					values := make([]float64, n)
					for i := range values {
						// A sum of three exponentials: skewness 1.15.
						values[i] = (random.ExpFloat64() + random.ExpFloat64() + random.ExpFloat64()) / 3
					}
					return bootstrapMean(values, bootstrapConfig{
						Replicates: 1000, Workers: 1, Seed: random.Uint64(),
						Method: method,
					})
				})
			})
		}
	}
}

func TestCoverageOfClusteredBootstrap(t *testing.T) {
	for _, hierarchical := range []bool{false, true} {
		for _, rate := range []float64{.2, .5, .8} {
			t.Run(fmt.Sprintf("hierarchical %v rate %g", hierarchical, rate), func(t *testing.T) {
				t.Parallel()
				wantCoverage(t, 600, .94, rate, func(random *rand.Rand) (Interval, error) {
					tasks := make([][]float64, 100)
					for i := range tasks {
						tasks[i] = runsOf(random, taskRate(random, rate, .4), 3)
					}
					return bootstrapClustered(tasks,
						bootstrapConfig{
							Replicates: 1000, Workers: 1, Seed: random.Uint64(),
							Hierarchical: hierarchical,
						})
				})
			})
		}
	}
}

func TestCoverageOfAddTwo(t *testing.T) {
	for _, cell := range []suite{
		{tasks: 10, runs: 3, rate: .5, correlation: .5},
		{tasks: 30, runs: 3, rate: .95, lift: .3, correlation: .5},
		{tasks: 30, runs: 1, rate: .5, lift: .3, correlation: .5},
	} {
		t.Run(fmt.Sprintf("%+v", cell), func(t *testing.T) {
			t.Parallel()
			wantCoverage(t, 1500, .94, cell.truth(), func(random *rand.Rand) (Interval, error) {
				sample, err := newPairedSample(cell.draw(random), false)
				if err != nil {
					return Interval{}, err
				}
				return sample.addTwo(.95), nil
			})
		})
	}
}

func TestCoverageOfPairedComparisons(t *testing.T) {
	for _, cell := range []suite{
		{tasks: 15, runs: 3, rate: .5, correlation: .5},
		{tasks: 15, runs: 5, rate: .3, lift: .2, correlation: .3},
		{tasks: 30, runs: 3, rate: .75, lift: .2, correlation: .5},
		{tasks: 30, runs: 3, rate: .5, lift: .3, correlation: .5},
		{tasks: 30, runs: 1, rate: .5, lift: .3, correlation: .5},
		{tasks: 50, runs: 5, rate: .7, lift: .2, correlation: .5},
		{tasks: 48, runs: 3, rate: .5, lift: .2, correlation: .3, perCluster: 2},
		{tasks: 60, runs: 3, rate: .5, lift: .2, correlation: .3, perCluster: 3},
		{tasks: 40, runs: 3, rate: .5, lift: .2, correlation: .3, strata: 4},
	} {
		t.Run(fmt.Sprintf("%+v", cell), func(t *testing.T) {
			t.Parallel()
			wantCoverage(t, 1500, .94, cell.truth(), func(random *rand.Rand) (Interval, error) {
				comparison, err := measured(cell.draw(random), CompareConfig{Replicates: 500, Seed: random.Uint64()})
				return *comparison.Interval, err
			})
		})
	}
}

func TestCoverageOfRatios(t *testing.T) {
	for _, tasks := range []int{10, 20, 50} {
		t.Run(fmt.Sprintf("%d tasks", tasks), func(t *testing.T) {
			t.Parallel()
			wantCoverage(t, 1500, .94, math.Log(.8), func(random *rand.Rand) (Interval, error) {
				pairs := make([]Pair, tasks)
				for i := range pairs {
					size := math.Exp(random.NormFloat64())
					for range 3 {
						pairs[i].Baseline = append(pairs[i].Baseline, size*math.Exp(.3*random.NormFloat64()))
						pairs[i].Candidate = append(pairs[i].Candidate, .8*size*math.Exp(.3*random.NormFloat64()))
					}
				}
				comparison, err := measuredRatio(pairs, CompareConfig{Replicates: 500, Seed: random.Uint64()})
				return *comparison.Interval, err
			})
		})
	}
}

func TestCoverageOfConfidenceSequences(t *testing.T) {
	for _, cell := range []suite{
		{tasks: 40, runs: 3, rate: .5, lift: .3, correlation: .3},
		{tasks: 40, runs: 1, rate: .5, lift: .3, correlation: .3},
		{tasks: 60, runs: 1, rate: .2, lift: .1, correlation: .5},
	} {
		t.Run(fmt.Sprintf("%+v", cell), func(t *testing.T) {
			t.Parallel()
			wantCoverage(t, 1000, .94, cell.truth(), func(random *rand.Rand) (Interval, error) {
				comparison, err := measuredSequential(cell.draw(random))
				return *comparison.Interval, err
			})
		})
	}
}

func TestCoverageWithLabelsDrawnAtRandom(t *testing.T) {
	for _, labels := range []int{50, 100} {
		for _, truth := range []float64{.2, .5, .8} {
			draw := func(random *rand.Rand) (labelled []Label, judged []float64) {
				run := func() Label {
					human := coin(random, truth)
					return Label{Human: human, Judge: coin(random, .9*human+.15*(1-human))}
				}
				for range labels {
					labelled = append(labelled, run())
				}
				for range 300 {
					judged = append(judged, run().Judge)
				}
				return labelled, judged
			}
			floor := .94
			if labels < 100 {
				floor = .93
			}
			t.Run(fmt.Sprintf("PPI++ %d labels rate %g", labels, truth), func(t *testing.T) {
				t.Parallel()
				wantCoverage(t, 2000, floor, truth, func(random *rand.Rand) (Interval, error) {
					labelled, judged := draw(random)
					result, err := PPIPlusPlus(labelled, judged, .95)
					return result.Interval, err
				})
			})
		}
	}
}

func TestCoverageOfRatiosOfSums(t *testing.T) {
	for _, tasks := range []int{15, 40} {
		for _, rate := range []float64{.3, .8} {
			t.Run(fmt.Sprintf("%d tasks at %g", tasks, rate), func(t *testing.T) {
				t.Parallel()
				// a run costs exp(½·0.5²) dollars on average
				truth := math.Exp(.125) / rate
				wantCoverage(t, 2000, .93, truth, func(random *rand.Rand) (Interval, error) {
					costs, passes := make([]float64, tasks), make([]float64, tasks)
					for i := range costs {
						own := taskRate(random, rate, .3)
						for range 3 {
							costs[i] += math.Exp(.5 * random.NormFloat64())
							passes[i] += coin(random, own)
						}
					}
					if interval, err := RatioOfSums(costs, passes, .95); err == nil {
						return interval, nil
					}
					return Interval{Hi: math.MaxFloat64}, nil // nothing passed: no price, and no claim
				})
			})
		}
	}
}
