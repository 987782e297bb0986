package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

func npmClient() client {
	return client{
		ecosystem: pkgref.Node, name: "npm", registry: "registry", ask: askNpm,
		question: []string{"npm", "config", "get", "registry"},
		answer:   func(out []byte) (said, error) { return said{index: strings.TrimSpace(string(out))}, nil },
		variables: func(name string) bool {
			return strings.HasPrefix(name, "NPM_CONFIG_") || name == "PREFIX" || name == "NODE_EXTRA_CA_CERTS"
		},
		files: func(env []string) []string {
			return append(npmrcPaths(npmSettings{}, env), value(env, "NODE_EXTRA_CA_CERTS"))
		},
	}
}

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

func (t texts) first() string {
	if len(t) == 0 {
		return ""
	}
	return t[0]
}

// askNpm asks the host's npm which registry it uses, and collects the
// credentials, proxy and roots that belong to it.
func askNpm(ctx context.Context, env []string) (upstream.Config, error) {
	s, err := npmSays(ctx, env)
	if err != nil {
		return upstream.Config{}, err
	}
	c := npmClient()
	rc := readNpmrc(s, env)
	source := c.byDefault()
	if _, set := rc["registry"]; set {
		source = c.byConfiguration()
	}
	if rc.scoped() {
		source += ", without its registries for scopes (name them under upstreams and namespaces)"
	}
	proxy := cmp.Or(s.HTTPSProxy.first(), s.Proxy.first())
	u, err := url.Parse(s.Registry)
	if err == nil && u.Scheme == "http" {
		proxy = cmp.Or(s.Proxy.first(), s.HTTPSProxy.first())
	}
	found := said{
		ecosystem: pkgref.Node, index: s.Registry, source: source, proxy: proxy, noProxy: strings.Join(s.NoProxy, ","),
		bundles: append([]bundle{{"npm's cafile", s.CAFile}, {"NODE_EXTRA_CA_CERTS", value(env, "NODE_EXTRA_CA_CERTS")}}, sharedBundles(env)...),
		roots:   []byte(strings.Join(s.CA, "\n")),
	}
	if err == nil {
		rc.credentials(u, &found)
	}
	return complete(found, env)
}

// npmSays has the first npm that answers show its settings.
func npmSays(ctx context.Context, env []string) (npmSettings, error) {
	env = append(slices.Clip(env), "npm_config_update_notifier=false")
	var failure error
	for _, path := range programs(env, []string{"npm"}, "/usr/local/bin", "/usr/bin") {
		out, err := asked(ctx, env, path, "config", "list", "--json")
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
		cmp.Or(s.GlobalConfig, value(env, "NPM_CONFIG_GLOBALCONFIG"), "/etc/npmrc"),
		cmp.Or(s.UserConfig, value(env, "NPM_CONFIG_USERCONFIG"), filepath.Join(value(env, "HOME"), ".npmrc")),
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

// FromNpmSource reads npm's default registry from its own source: the file
// with the definitions of its settings. Nothing is run.
func FromNpmSource(definitions []byte, env []string) (upstream.Config, error) {
	return npmClient().unconfigured(definitions, func(text []byte) (said, error) {
		m := npmDefault.FindSubmatch(text)
		if m == nil {
			return said{}, fault.New(fault.ErrUnavailable, "npm's source has no default registry where one was expected")
		}
		return said{index: string(m[1])}, nil
	}, npmClient().bySource(), env)
}
