package sandbox

import (
	"runtime"
	"strings"
	"testing"
)

func TestDetectSaysWhatIsMissingAndHowToGetIt(t *testing.T) {
	found := Detect(t.Context())
	for _, c := range found.List() {
		if c.Name == "" || c.Detail == "" {
			t.Errorf("nothing is said about %+v", c)
		}
	}
	for _, c := range []Capability{found.Bwrap, found.BwrapNetwork} {
		if !c.OK && c.Fix == "" {
			t.Errorf("%s is missing and no way out is named: %+v", c.Name, c)
		}
	}
	if runtime.GOOS == "linux" && found.Containment == ProcessGroup {
		t.Errorf("Linux can do better than %s", found.Containment)
	}
}

func TestInstallCommandFitsTheSystem(t *testing.T) {
	for system, want := range map[string]string{
		"debian": "sudo apt-get install -y bubblewrap", "fedora": "sudo dnf install -y bubblewrap",
		"arch": "sudo pacman -S --noconfirm bubblewrap", "alpine": "sudo apk add bubblewrap",
		"opensuse": "sudo zypper install -y bubblewrap",
	} {
		t.Run(system, func(t *testing.T) {
			if got := installCommandFor([]string{"derivative", system}, "bubblewrap", false); got != want {
				t.Errorf("%s: %q, want %q", system, got, want)
			}
		})
	}
	if got := installCommandFor([]string{"debian"}, "bubblewrap", true); got != "apt-get install -y bubblewrap" {
		t.Errorf("as root: %q", got)
	}
	if got := installCommandFor(nil, "bubblewrap", false); !strings.Contains(got, "package manager") {
		t.Errorf("unknown system: %q", got)
	}
}
