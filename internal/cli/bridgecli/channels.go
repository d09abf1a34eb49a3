package bridgecli

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/bridge/channel"
	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/github"
)

// channelOptions are the flags of the places outside in which threads appear.
type channelOptions struct {
	repositories            []string
	api                     string
	tokenFile, secretFile   string
	allowed                 []string
	mention                 string
	pace                    console.Span
	webhook, webhookSecrets string
	workflow                string
}

// secretVariables begins the names of variables that hold secrets of the bridge. Runs do not get
// them.
const secretVariables = "FIT_BRIDGE_"

const (
	tokenVariable   = secretVariables + "GITHUB_TOKEN"
	secretVariable  = secretVariables + "GITHUB_SECRET"
	webhookVariable = secretVariables + "WEBHOOK_SECRET"
)

func (o *channelOptions) register(flags *pflag.FlagSet) {
	o.pace.Value = time.Second
	flags.StringArrayVar(&o.repositories, "github", nil, "`REPOSITORY` whose issues and discussions are threads, as "+
		"OWNER/NAME or OWNER/NAME=TENANT; repeatable")
	flags.StringVar(&o.tokenFile, "github-token-file", "", "`FILE` with the token that comments and starts workflows "+
		"(default: $"+tokenVariable+")")
	flags.StringVar(&o.secretFile, "github-secret-file", "", "`FILE` with the secret of the repository's webhook "+
		"(default: $"+secretVariable+")")
	flags.StringVar(&o.api, "github-api", "", "`URL` of the API of an enterprise, such as https://HOST/api/v3")
	flags.StringSliceVar(&o.allowed, "github-allow", nil, "`LOGINS` of people and bots who post, beside the owners, "+
		"members and collaborators of the repository; * is everybody but bots")
	flags.StringVar(&o.mention, "github-mention", "", "`TEXT` with which people open a thread (default: every issue, "+
		"discussion and comment opens one)")
	flags.Var(&o.pace, "github-pace", "time between two comments")
	flags.StringVar(&o.webhook, "webhook", "", "`URL` to which every post is sent, signed")
	flags.StringVar(&o.webhookSecrets, "webhook-secret-file", "",
		"`FILE` with the secret that signs (default: $"+webhookVariable+")")
	flags.StringVar(&o.workflow, "dispatch-workflow", "", "GitHub `WORKFLOW` that holds a run, as OWNER/NAME/FILE@REF"+
		", instead of fit-harness discuss on this machine")
}

// channels are the places outside that a bridge serves.
type channels struct {
	list     []server.Channel
	github   *channel.GitHub
	workflow workflow
}

func (o *channelOptions) open(con *console.Console) (*channels, error) {
	opened := &channels{}
	if len(o.repositories) > 0 {
		if err := o.openGitHub(con, opened); err != nil {
			return nil, err
		}
	}
	if o.webhook != "" {
		if err := o.openWebhook(con, opened); err != nil {
			return nil, err
		}
	}
	if o.workflow != "" {
		token, err := secret(con, o.tokenFile, "--github-token-file", tokenVariable)
		if err != nil {
			return nil, err
		}
		if opened.workflow, err = parseWorkflow(o.workflow); err != nil {
			return nil, err
		}
		opened.workflow.client.Base, opened.workflow.client.Token = o.api, token
	}
	return opened, o.checkAPI()
}

func (o *channelOptions) checkAPI() error {
	if o.api == "" || secure(o.api) {
		return nil
	}
	return console.Usagef("--github-api must be an https URL: the token would be sent in the clear")
}

func (o *channelOptions) openGitHub(con *console.Console, opened *channels) error {
	tenants := map[string]string{}
	for _, text := range o.repositories {
		name, tenant, named := strings.Cut(text, "=")
		repository, err := github.ParseRepository(name)
		if err != nil {
			return console.Usagef("--github: %w", err)
		}
		if !named {
			tenant = defaultTenant
		}
		if !server.IsTenant(tenant) {
			return console.Usagef("--github: the tenant %q must be lower-case letters, digits and dashes", tenant)
		}
		tenants[strings.ToLower(repository.Owner+"/"+repository.Name)] = tenant
	}
	token, err := secret(con, o.tokenFile, "--github-token-file", tokenVariable)
	if err != nil {
		return err
	}
	shared, err := secret(con, o.secretFile, "--github-secret-file", secretVariable)
	if err != nil {
		return err
	}
	opened.github = &channel.GitHub{
		Base:    o.api,
		Token:   token,
		Secret:  []byte(shared),
		Tenants: tenants,
		Allowed: o.allowed,
		Mention: o.mention,
		Pace:    o.pace.Value,
	}
	opened.list = append(opened.list, opened.github.Channel())
	return nil
}

func (o *channelOptions) openWebhook(con *console.Console, opened *channels) error {
	if !secure(o.webhook) {
		return console.Usagef("--webhook must be https, or on this machine: posts would be sent in the clear")
	}
	text, err := secret(con, o.webhookSecrets, "--webhook-secret-file", webhookVariable)
	if err != nil {
		return err
	}
	key, err := channel.ParseSecret(text)
	if err != nil {
		return console.Usagef("--webhook-secret-file: %w", err)
	}
	opened.list = append(opened.list, (&channel.Webhook{URL: o.webhook, Secret: key}).Channel())
	return nil
}

// secure reports whether what is sent to an address cannot be read on the way.
func secure(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return false
	}
	ip := net.ParseIP(parsed.Hostname())
	local := parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return parsed.Scheme == "https" || parsed.Scheme == "http" && local
}

// secret reads a secret from a file or a variable. It is never on a command line.
func secret(con *console.Console, file, flag, variable string) (string, error) {
	text := con.Getenv(variable)
	if file != "" {
		data, err := os.ReadFile(con.Path(file))
		if err != nil {
			return "", console.Usagef("%s: %w", flag, err)
		}
		text = string(data)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", console.Usagef("no secret: set %s or $%s", flag, variable)
	}
	return text, nil
}

// handler answers GitHub; everything else is for the pages.
func (c *channels) handler(bridge *server.Server, pages http.Handler) http.Handler {
	if c.github == nil {
		return pages
	}
	c.github.Hear = bridge.Hear
	mux := http.NewServeMux()
	mux.Handle("POST /api/webhook", c.github)
	mux.Handle("/", pages)
	return mux
}
