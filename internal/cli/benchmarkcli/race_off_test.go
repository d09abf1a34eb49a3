//go:build !race

package benchmarkcli

const raceEnabled = false
