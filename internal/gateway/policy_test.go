package gateway_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/gateway"
)

// TestAPolicyNeedsItsGateway: what only a gateway can do is refused where there is none.
func TestAPolicyNeedsItsGateway(t *testing.T) {
	for option, policy := range map[string]gateway.Policy{
		"DenyServerTools": {DenyServerTools: true},
		"Faults":          {Faults: &gateway.Faults{}},
		"Replay":          {Replay: "run"},
	} {
		t.Run(option, func(t *testing.T) {
			if err := policy.Check(); err != nil {
				t.Errorf("%s: %v", option, err)
			}
			policy.Gateway = gateway.Off
			if refused, ok := errors.AsType[*gateway.OptionError](policy.Check()); !ok || refused.Option != option {
				t.Errorf("%s without a gateway: %v", option, policy.Check())
			}
		})
	}
	if err := (gateway.Policy{Gateway: "maybe"}).Check(); err == nil {
		t.Error("a gateway that is neither on nor off passes")
	}
}

// TestAPolicyTravelsWhole: another machine gets the same policy, fault plan included, and knows it
// by the same digest. What only decides what is kept does not make runs differ.
func TestAPolicyTravelsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(path, []byte("seed: 7\nfaults: [{kind: cut-stream, chance: 0.5}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	faults, err := gateway.LoadFaults(path)
	if err != nil {
		t.Fatal(err)
	}
	sent := gateway.Policy{DenyServerTools: true, Faults: faults, Record: "meta"}
	content, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got gateway.Policy
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	if got.Digest() != sent.Digest() || got.Record != "meta" || got.Faults.Digest() != faults.Digest() {
		t.Errorf("%s became %+v", content, got)
	}
	for n := range 20 {
		if got.Faults.Draw("task", n) != faults.Draw("task", n) {
			t.Errorf("call %d meets another fault", n)
		}
	}
	kept, faulty := gateway.Policy{Record: "off", Replay: "run"}, gateway.Policy{Faults: faults}
	if off := (gateway.Policy{Gateway: gateway.Off}); off.Digest() == "" || off.Text() == "" {
		t.Error("without a gateway calls are not what they are with one")
	}
	if kept.Digest() != "" || faulty.Digest() == "" || faulty.Digest() == sent.Digest() {
		t.Error("the digest does not tell what is done to calls")
	}
}
