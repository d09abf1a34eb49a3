// Package stats is the mathematics of "did it get better": intervals, paired tests, pass@k, power,
// anytime-valid evidence and the correction of imperfect judges. It is pure: no files, no clock, no
// global random state. Functions that draw random numbers take a seed and give the same answer on
// any number of cores.
//
// The data flows through four steps:
//
//  1. Collect the outcomes of both arms task by task as [Pair] values. The task is the unit of
//     inference; runs are replicates within a task and are averaged first. Tasks that share a
//     repository or another origin carry the same Cluster.
//  2. [Compare] (or [CompareRatio] for cost and time) chooses a method by the rule below and
//     returns a [Comparison]: effect, interval, p-value, and the name of the method.
//     [CompareSequential] does the same for a sequential analysis.
//  3. [Decide] turns a Comparison into a [Decision]: one of the five claims and a sentence for
//     people. [DecideFamily] does so for several comparisons of one report, corrected for their
//     number.
//  4. [MinimumDetectableEffect], [TasksNeeded], [RunsNeeded] and [Allocate] say what a larger
//     experiment would cost and could show.
//
// # How the method is chosen
//
// Compare looks only at the design and at the shape of the data, never at the result:
//
//   - one run per arm and task, every outcome 0 or 1, no clusters, no strata: exact McNemar test
//     with the Bonett–Price interval;
//   - everything else: sign-flip permutation test of the per-task differences, flipping whole
//     clusters where there are any. It is exact for differences on a lattice (means of passes
//     are) and up to 18 informative units. Beyond, it draws random patterns until the 99.9%
//     interval of p excludes the significance level, ten million at most;
//   - its interval is Student's t on the per-task differences, cluster-robust where tasks are
//     clustered and within strata where they are stratified;
//   - from 50 tasks on, differences of unbounded quantities (cost, time,
//     points) with a skewness beyond ±1, without clusters and strata, get a BCa bootstrap
//     interval instead. For outcomes between 0 and 1 it stays with t, which covers better in
//     every simulation made;
//   - under 15 tasks a bootstrap interval is refused even when asked for: it is
//     too short there;
//   - if all differences are equal the sample says nothing about their spread: outcomes between 0
//     and 1 then get the add-two interval (Bonett–Price for any bounded score), others get no
//     interval and can carry no claim.
//
// Single rates follow the same idea: [PassRate] and [TaskMean] give a Wilson interval with as many
// trials as there are tasks, whatever the runs per task.
//
// # Numbers that are refused
//
// NaN, infinities, negative counts, more successes than trials, levels outside (0, 1) and empty
// samples are errors, never results.
package stats
