//go:build race

package cheats

const raceEnabled = true
