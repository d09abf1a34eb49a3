package task

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTheNetworkOfAgents(t *testing.T) {
	host, prefers, insists := AgentNetwork{Kind: "host"}, AgentNetwork{Kind: "model"},
		AgentNetwork{Kind: "model", Required: true}
	for _, c := range []struct {
		family, task string
		want         AgentNetwork
	}{
		{"", "", host},
		{"", "network: {agent: host}", host},
		{"", "network: {agent: host, required: true}", host}, // there is nothing to insist on
		{"", "network: {agent: model}", insists},
		{"", "network: {agent: none}", AgentNetwork{Kind: "none", Required: true}},
		{"", "network: {agent: model, required: false}", prefers},
		{"", "network: {agent: true}", host},
		{"", "network: {agent: True}", host},
		{"", "network: {agent: false}", prefers},
		{"", "network: {agent: false, required: true}", insists},
		{"network: {agent: model, required: false}", "", prefers},
		{"network: {agent: model, required: false}", "network: {grader: true}", prefers},
		{"network: {agent: model, required: false}", "network: {required: true}", insists},
		{"network: {agent: model, required: false}", "network: {agent: none}", AgentNetwork{Kind: "none", Required: true}},
		{"network: {agent: model}", "network: {required: false}", prefers},
		{"network: {agent: model}", "network: {agent: host}", host},
	} {
		t.Run(c.family, func(t *testing.T) {
			files := map[string]string{"family.yaml": "name: x\n" + c.family + "\n"}
			if c.task != "" {
				files["tasks/one/task.yaml"] = c.task + "\n"
			}
			family := mustLoad(t, newFamily(t, files))
			if got := family.Tasks[0].Settings.AgentNetwork; got != c.want {
				t.Errorf("/ %s: %+v, want %+v", c.task, got, c.want)
			}
		})
	}
}

func TestAnUnknownNetworkIsNamedWithItsPlace(t *testing.T) {
	dir := newFamily(t, map[string]string{"tasks/one/task.yaml": "network: {agent: vpn}\n"})
	_, err := Load(t.Context(), dir, Options{})
	if err == nil || !strings.Contains(err.Error(), "task.yaml:1:18") || !strings.Contains(err.Error(), "model") {
		t.Error(err)
	}
}

// Records name tasks by digests of their settings, which must not change by themselves.
func TestWhatEarlierVersionsCouldSayIsWrittenAsTheyWroteIt(t *testing.T) {
	for network, want := range map[AgentNetwork]string{
		{Kind: "host"}:                  "true",
		{Kind: "model"}:                 "false",
		{Kind: "model", Required: true}: `{"Kind":"model","Required":true}`,
		{Kind: "none"}:                  `{"Kind":"none","Required":false}`,
	} {
		text, err := json.Marshal(network)
		var again AgentNetwork
		if err != nil || string(text) != want || json.Unmarshal(text, &again) != nil || again != network {
			t.Errorf("%+v is %s and again %+v, %v", network, text, again, err)
		}
	}
}
