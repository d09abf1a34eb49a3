// Command tracebench measures fit-trace side by side with grep, wc and jq on the same large trace,
// prints the ratios and the peak memory, and fails where a limit is broken. Ratios matter: they
// hold on slow and on fast machines.
//
//	go run ./internal/query/internal/tracebench                     1 GB in a temporary directory
//	go run ./internal/query/internal/tracebench -size 128000000 -jq=false
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fit-eval/fit/internal/query/internal/gentrace"
)

type options struct {
	size   int64
	rounds int
	jq     bool
	fit    string
	file   string
}

// contest is one command and what it may take.
type contest struct {
	name string
	args []string
	// ratio is how many times the wall time of grep it may take; 0 means that it is only shown.
	ratio float64
	// once is for commands that are too slow to be run many times.
	once bool

	best   time.Duration
	memory int64 // bytes
}

const memoryLimit = 100 << 20

func main() {
	var o options
	flag.Int64Var(&o.size, "size", 1_000_000_000, "bytes of the trace")
	flag.IntVar(&o.rounds, "rounds", 5, "how often everything is run; the best time counts")
	flag.BoolVar(&o.jq, "jq", true, "run jq too, which takes long")
	flag.StringVar(&o.fit, "fit", "", "the binary to measure; built from ./cmd/fit if empty")
	flag.StringVar(&o.file, "file", "", "the trace to use; made if empty")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "tracebench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	dir, err := os.MkdirTemp("", "fit-tracebench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.fit == "" {
		o.fit = filepath.Join(dir, "fit")
		build := exec.Command("go", "build", "-o", o.fit, "./cmd/fit")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build fit: %w", err)
		}
	}
	trace := filepath.Join(dir, "trace.ndjson")
	if o.file != "" {
		trace = o.file
	} else if err := generate(trace, o.size); err != nil {
		return err
	}
	contests := contestants(o, trace)
	if err := measure(contests, o.rounds); err != nil {
		return err
	}
	for range 2 { // a busy machine deserves a second look before a limit counts as broken
		if len(broken(contests)) > 0 {
			if err := measure(contests, o.rounds); err != nil {
				return err
			}
		}
	}
	return report(contests)
}

func generate(path string, size int64) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	start := time.Now()
	err = errors.Join(gentrace.Write(file, gentrace.Config{Bytes: size, Seed: 7}), file.Close())
	fmt.Printf("made a trace of %d bytes in %s\n", size, time.Since(start).Round(time.Millisecond))
	return err
}

func contestants(o options, trace string) []*contest {
	fit := func(verb string, ratio float64, args ...string) *contest {
		return &contest{
			name: "fit trace " + verb, args: append([]string{o.fit, "trace", verb}, args...),
			ratio: ratio,
		}
	}
	list := []*contest{
		{name: "grep -c", args: []string{"grep", "-c", `"type":"assistant"`, trace}},
		{name: "wc -l", args: []string{"wc", "-l", trace}},
		fit("count", 2, trace), fit("overview", 4, trace), fit("stats", 4, trace), fit("tools", 4, trace),
		fit("errors", 4, trace), fit("search", 4, trace, "zanzibar.*quux"), fit("tail", 4, trace),
	}
	if o.jq {
		list = append(list,
			&contest{
				name: "jq (count)", once: true,
				args: []string{"jq", "-n", `reduce (inputs | select((.event.type // .type) == "assistant")) as $x (0; . + 1)`, trace},
			})
	}
	return list
}

// measure runs everything in turns, so that a busy moment of the machine hits all alike.
func measure(contests []*contest, rounds int) error {
	for range rounds {
		for _, c := range contests {
			if c.once && c.best > 0 {
				continue
			}
			elapsed, memory, err := time1(c.args)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if c.best == 0 || elapsed < c.best {
				c.best = elapsed
			}
			c.memory = max(c.memory, memory)
		}
	}
	return nil
}

func time1(args []string) (time.Duration, int64, error) {
	command := exec.Command(args[0], args[1:]...)
	var problem strings.Builder
	// into a pipe: grep stops at the first match if nobody can see how many there are
	command.Stdout, command.Stderr = io.Discard, &problem
	start := time.Now()
	err := command.Run()
	elapsed := time.Since(start)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, problem.String())
	}
	usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return elapsed, 0, nil
	}
	return elapsed, usage.Maxrss << 10, nil
}

// grepTime returns the time that everything is compared with.
func grepTime(contests []*contest) time.Duration {
	return contests[slices.IndexFunc(contests, func(c *contest) bool { return strings.HasPrefix(c.name, "grep") })].best
}

// broken names the contests that are beyond their limits.
func broken(contests []*contest) []string {
	grep := grepTime(contests)
	var names []string
	for _, c := range contests {
		if c.ratio > 0 && (float64(c.best) > c.ratio*float64(grep) || c.memory > memoryLimit) {
			names = append(names, c.name)
		}
	}
	return names
}

func report(contests []*contest) error {
	beyond := broken(contests)
	fmt.Printf("\n%-36s %10s %8s %10s  %s\n", "", "wall", "x grep", "peak MB", "limit")
	for _, c := range contests {
		limit := ""
		if c.ratio > 0 {
			limit = fmt.Sprintf("%.0f x grep, %d MB", c.ratio, memoryLimit>>20)
		}
		if slices.Contains(beyond, c.name) {
			limit += "  BROKEN"
		}
		ratio := float64(c.best) / float64(grepTime(contests))
		fmt.Printf("%-36s %10s %8.2f %10.1f  %s\n", c.name, c.best.Round(100*time.Microsecond), ratio,
			float64(c.memory)/(1<<20), limit)
	}
	if len(beyond) > 0 {
		return fmt.Errorf("beyond the limit: %s", strings.Join(beyond, ", "))
	}
	return nil
}
