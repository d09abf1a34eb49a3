package pi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
)

func TestListsOfToolsMayNameThemAsOthersDo(t *testing.T) {
	settings, err := bridgeSettings(agent.Config{
		AllowedTools:    []string{"Read", "Glob", "ls", "custom"},
		DisallowedTools: []string{"Bash", "write"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"read", "find", "ls", "custom"}, settings["allow"]); diff != "" {
		t.Errorf("allowed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"bash", "write"}, settings["deny"]); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
}
