//go:build race

package benchmarkcli

const raceEnabled = true
