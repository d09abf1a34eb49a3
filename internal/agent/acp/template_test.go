package acp

import (
	"strings"
	"testing"
	"text/template"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/jsonenc"
)

// TestTemplatesMeanWhatPackageTemplateSays fills in templates with package text/template, too.
func TestTemplatesMeanWhatPackageTemplateSays(t *testing.T) {
	texts := []string{
		"{{.Model}} {{.Retries}} {{.Restricted}}", "{{if .URL}}{{.URL}}/v1{{else}}none{{end}}",
		`{{if eq .Protocol "x"}}1{{else if ne .Protocol "chat"}}2{{else}}3{{end}}`,
		`{{or .Proxy "x"}} {{or "" 0 .Model}}`,
		` {{and .Model .URL}} {{or .Key}} {{not .Restricted}} {{and .Restricted .Missing}}`,
		`{{json .Denied}} {{json (print .URL "/v1")}} {{.Denied}} {{len .Denied}} {{len .Model}}`,
		`{{range .Denied}}[{{.}}]{{else}}none{{end}}`,
		`{{range $i, $e := .Denied}}{{$i}}{{$e}}{{if eq $i 1}}{{break}}{{end}},{{end}}`,
		`{{range .Denied}}{{if eq . "b"}}{{continue}}{{end}}{{.}}{{end}} {{range 3}}{{.}}{{end}}`,
		`{{range .MCPServers}}{{.Name}}: {{.URL}}{{index .Headers "A"}}{{end}}`,
		`{{range .MCPServers}}{{range $k, $v := .Headers}}{{$k}}-{{$v}};{{end}}{{end}}`,
		`{{with .Model}}{{.}} {{$.Home}}{{else}}x{{end}} {{with .Proxy}}a{{else with .Home}}{{.}}{{end}}`,
		`{{$x := .Model}}{{$x}} {{if true}}{{$x = "y"}}{{$x := "z"}}{{$x}}{{end}} {{$x}} {{$x | printf "%s-%s" "a"}}`,
		`{{.Model | printf "%q" | print "m: "}} {{"a b" | urlquery}} {{html "<"}} {{js "'"}} {{println 1 2.5 true}}`,
		`{{lt 1 2}} {{le "a" "b"}} {{gt 1.5 1.0}} {{ge 2 3}} {{eq .Model "a" "m" "b"}} {{ne true false}} {{eq .Retries 3}}`,
		`{{index .Denied 1}} {{slice .Model 1}} {{slice .Denied 0 2}} {{(index .MCPServers 0).Name}} {{/* nothing */ -}} x`,
		`{{.FromAnywhere "/a"}} {{.First "a" "b"}} {{.MCPServers.File "http"}} {{"/b" | .FromAnywhere}}`,
		`{{print (or .URL "https://api.openai.com") "/v1"}}{{"{{"}}`, "{{- .Model -}} x", "{{if .Proxy}}{{end}}", "{{.}}",
		// Mistakes:
		"{{.Modell}}", "{{if}}", "{{", "{{.Model.Name}}",
		"{{lt .Model 1}}", "{{range .Model}}x{{end}}", "{{index .Denied 9}}",
		"{{.Model 1}}", "{{len 3}}", "{{eq 1}}", "{{nothing}}",
		"{{slice .Model 2 1}}", "{{not}}", "{{$y}}", `{{template "x"}}`,
	}
	for _, entry := range table {
		for _, text := range entry.templates() {
			texts = append(texts, text)
		}
	}
	remote := agent.MCPServer{Name: "team", URL: "http://127.0.0.1:9", Headers: map[string]string{"B": "2", "A": "1"}}
	full := values{
		URL: "http://127.0.0.1:1", Key: "k", Model: "m<&>\"o", Protocol: "chat", Home: "/home", Dir: t.TempDir(),
		Parent: "/p", SystemPrompt: "Be\nbrief.", Restricted: true, Retries: 3, Programs: true,
		Denied: []string{"a", "b", "c"}, MCPServers: toolServers{remote, {Name: "local", Command: "x"}},
	}
	for _, v := range []values{full, {}, {Protocol: "anthropic", Project: true, URL: "u", Dir: t.TempDir()}} {
		for _, text := range texts {
			var want strings.Builder
			parsed, wrong := template.New("").Funcs(template.FuncMap{"json": func(value any) (string, error) {
				encoded, err := jsonenc.Marshal(value)
				return string(encoded), err
			}}).Parse(text)
			if wrong == nil {
				wrong = parsed.Execute(&want, v)
			}
			got, err := render(text, v)
			if (err != nil) != (wrong != nil) || err == nil && got != want.String() {
				t.Errorf("%s:\ngot  %q, error %v\nwant %q, error %v", text, got, err, want.String(), wrong)
			}
		}
	}
}
