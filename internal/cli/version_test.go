package cli

import (
	"runtime/debug"
	"testing"
)

func TestTheVersionHasARevisionAndADate(t *testing.T) {
	for want, info := range map[string]debug.BuildInfo{
		"devel, revision unknown, date unknown": {Main: debug.Module{Version: "(devel)"}},
		"v1.2.0, revision abc, 2026-11-15T10:00:00Z": {Main: debug.Module{Version: "v1.2.0"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-15T10:00:00Z"},
		}},
		"devel, revision abc with changes, date unknown": {Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
		}},
	} {
		t.Run(want, func(t *testing.T) {
			if got := versionOf(&info); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
