package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

// bill is a bill of materials in the form of CycloneDX.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// writeBill lists the modules that are in a program, as the program itself says.
func (r *release) writeBill(program, name string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read what %s is made of: %w", name, err)
	}
	one := func(kind, path, version string) component {
		return component{
			Type:    kind,
			Name:    path,
			Version: version,
			PURL:    "pkg:golang/" + path + "@" + version,
		}
	}
	list := bill{
		Format:  "CycloneDX",
		Spec:    "1.6",
		Version: 1,
		Metadata: metadata{
			Timestamp: r.date.Format(time.RFC3339),
			Component: one("application", info.Main.Path, "v"+r.version),
		},
	}
	list.Metadata.Component.Properties = []property{{"go", info.GoVersion}, {"revision", r.revision}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		found := one("library", module.Path, module.Version)
		found.Properties = []property{{"go.sum", module.Sum}}
		list.Components = append(list.Components, found)
	}
	content, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(r.out, name+".cdx.json"), append(content, '\n'))
}

var formula = template.Must(template.New("formula").Parse(`# Built from revision {{.Revision}}.
class Fit < Formula
  desc "Prove whether a change to an agent made it better"
  homepage "https://github.com/fit-eval/fit"
  version "{{.Version}}"
  license "Apache-2.0"
{{range $system, $archives := .Systems}}
  on_{{$system}} do
{{- range $archives}}
    on_{{.Processor}} do
      url "https://github.com/fit-eval/fit/releases/download/v{{$.Version}}/{{.Name}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install Dir["bin/*"]
    man1.install Dir["share/man/man1/*"]
    bash_completion.install Dir["share/bash-completion/completions/*"]
    zsh_completion.install "share/zsh/site-functions/_fit"
    fish_completion.install "share/fish/vendor_completions.d/fit.fish"
  end

  test do
    system bin/"fit", "version"
  end
end
`))

type archive struct{ Name, Processor, Sum string }

// writeFormula writes the formula for Homebrew, which names the archives and their checksums.
func (r *release) writeFormula() error {
	paths, err := filepath.Glob(filepath.Join(r.out, "*.tar.gz"))
	if err != nil {
		return err
	}
	systems := map[string][]archive{}
	for _, path := range paths {
		sum, err := checksum(path)
		if err != nil {
			return err
		}
		name := filepath.Base(path)
		parts := strings.Split(strings.TrimSuffix(name, ".tar.gz"), "_")
		system := map[string]string{"linux": "linux", "darwin": "macos"}[parts[2]]
		processor := map[string]string{"amd64": "intel", "arm64": "arm"}[parts[3]]
		if system == "" || processor == "" {
			continue // Homebrew does not know it
		}
		systems[system] = append(systems[system], archive{name, processor, sum})
	}
	var text strings.Builder
	facts := map[string]any{"Version": r.version, "Revision": r.revision, "Systems": systems}
	if err := formula.Execute(&text, facts); err != nil {
		return fmt.Errorf("write the formula: %w", err)
	}
	return write(filepath.Join(r.out, "fit.rb"), []byte(text.String()))
}

// writeChecksums lists everything that is published, as sha256sum --check reads it.
func (r *release) writeChecksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, entry := range entries {
		sum, err := checksum(filepath.Join(r.out, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, entry.Name())
	}
	return write(filepath.Join(r.out, "SHA256SUMS"), []byte(list.String()))
}

func checksum(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("sum %s: %w", filepath.Base(path), err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(content)), nil
}
