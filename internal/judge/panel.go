package judge

import (
	_ "embed" // the built-in families
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/model"
)

// Panel is panel.yaml: the models that judge.
type Panel struct {
	Members []Member `json:"members" yaml:"members" doc:"The models that judge, each of another family." required:"true"`
}

// Member is one model of a panel.
type Member struct {
	Name     string `json:"name" yaml:"name" doc:"How reports name the member." pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" required:"true"`
	Protocol string `json:"protocol" yaml:"protocol" doc:"The protocol of its endpoint." enum:"anthropic,responses,chat" required:"true"`
	Model    string `json:"model" yaml:"model" doc:"The exact id of the model; pin a dated one." required:"true"`
	ModelURL string `json:"modelUrl,omitempty" yaml:"modelUrl" doc:"The endpoint without /v1; default: the vendor's."`
	Family   string `json:"family" yaml:"family" doc:"Who trained the model, for example mistral. Families of a panel differ." pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" required:"true"`
	KeyEnv   string `json:"keyEnv,omitempty" yaml:"keyEnv" doc:"The environment variable that holds the API key; none is sent without it." pattern:"^[A-Za-z_][A-Za-z0-9_]*$"`
}

// LoadPanel reads panel.yaml. Mistakes are reported with file, line and column.
func LoadPanel(path string) (Panel, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return Panel{}, fmt.Errorf("read panel: %w", err)
	}
	return parsePanel(path, source)
}

func parsePanel(path string, source []byte) (Panel, error) {
	var panel Panel
	doc, err := document.Read(path, source, &panel)
	if err != nil {
		return Panel{}, err
	}
	if len(panel.Members) == 0 {
		return Panel{}, doc.ErrorAt([]string{"members"}, "a panel needs at least one member")
	}
	for i, member := range panel.Members {
		at := func(key, format string, args ...any) error {
			return doc.ErrorAt([]string{"members", strconv.Itoa(i), key}, format, args...)
		}
		if known := familyOf(member.Model); known != "" && known != member.family() {
			return Panel{}, at("family", "%s is a model of %s, not of %s", member.Model, known, member.Family)
		}
		endpoint := model.Config{Protocol: model.Protocol(member.Protocol), ModelURL: member.ModelURL}
		if _, err := model.New(endpoint); err != nil {
			return Panel{}, at("modelUrl", "%s", err)
		}
		for _, other := range panel.Members[:i] {
			switch {
			case other.Name == member.Name:
				return Panel{}, at("name", "two members are called %s", member.Name)
			case other.family() == member.family():
				return Panel{}, at("family", "%s and %s are both of the family %s: members of one family share their "+
					"errors", other.Name, member.Name, member.Family)
			case other.Model == member.Model:
				return Panel{}, at("model", "%s and %s are the same model %s", other.Name, member.Name, member.Model)
			}
		}
	}
	return panel, nil
}

func (m Member) family() string { return strings.ToLower(m.Family) }

// familiesSource maps the beginnings of model ids to their vendors.
//
//go:embed families.json
var familiesSource []byte

var families = sync.OnceValue(func() map[string]string {
	var known map[string]string
	if err := document.DecodeJSON("families.json", familiesSource, &known); err != nil {
		panic("built-in families: " + err.Error()) // a test reads it
	}
	return known
})

// familyOf returns the vendor of a model, by its id or that of the agent built on it; empty if it
// is unknown. Vendors, regions and services may come before the model, behind slashes, dots and
// colons: azure/gpt-…, us.amazon.nova-…, ft:gpt-….
func familyOf(model string) string {
	model = strings.ToLower(model)
	if slash := strings.LastIndexByte(model, '/'); slash >= 0 {
		model = model[slash+1:]
	}
	for {
		for prefix, family := range families() { // no prefix is the beginning of another up to a whole word
			rest, found := strings.CutPrefix(model, prefix)
			if found && (rest == "" || rest[0] < 'a' || rest[0] > 'z') {
				return family
			}
		}
		at := strings.IndexAny(model, ".:")
		if at < 0 {
			return ""
		}
		model = model[at+1:]
	}
}

// Vendor returns the vendor of the first id that names a known model or agent; empty if none does.
func Vendor(ids ...string) string {
	for _, id := range ids {
		if vendor := familyOf(id); vendor != "" {
			return vendor
		}
	}
	return ""
}

// Check refuses a panel that would judge its own family: underTest lists the ids of the models and
// agents under test. sameFamily allows it.
func (p Panel) Check(underTest []string, sameFamily bool) error {
	if sameFamily {
		return nil
	}
	if kin := p.Related(underTest); len(kin) > 0 {
		return fmt.Errorf("%s: choose another member, or allow it with --same-family", strings.Join(kin, "; "))
	}
	return nil
}

// Related names the members that are of the family of a model under test, each with a sentence.
func (p Panel) Related(underTest []string) []string {
	var kin []string
	for _, member := range p.Members {
		for _, tested := range underTest {
			if familyOf(tested) == member.family() || tested == member.Model {
				kin = append(kin, fmt.Sprintf("judge %s is of the family %s, and so is %s, which is under test",
					member.Name, member.Family, tested))
				break
			}
		}
	}
	slices.Sort(kin)
	return kin
}

// connect makes each member's client when it is first asked. The function it returns closes the
// connections.
func (a *asking) connect() func() {
	if a.limits.Client != nil {
		a.client = a.limits.Client
		return func() {}
	}
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = a.limits.Parallel
	var mu sync.Mutex
	clients := map[string]model.Client{}
	a.client = func(m Member) (model.Client, error) {
		mu.Lock()
		defer mu.Unlock()
		if clients[m.Name] != nil {
			return clients[m.Name], nil
		}
		client, err := newClient(m, a.limits.Getenv, &http.Client{Transport: transport})
		clients[m.Name] = client
		return client, err
	}
	return transport.CloseIdleConnections
}

func newClient(m Member, getenv func(string) string, client *http.Client) (model.Client, error) {
	config := model.Config{Protocol: model.Protocol(m.Protocol), ModelURL: m.ModelURL, HTTPClient: client}
	if m.KeyEnv != "" {
		if config.APIKey = getenv(m.KeyEnv); config.APIKey == "" {
			return nil, fmt.Errorf("%s, which holds its API key, is not set", m.KeyEnv)
		}
	}
	return model.New(config)
}
