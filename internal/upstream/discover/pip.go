package discover

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// askDefault prints the index that pip uses when nothing is configured.
const askDefault = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"

func pipClient() client {
	return client{
		ecosystem: pkgref.Python, name: "pip", registry: "index", ask: askPip,
		question: []string{"python3", "-I", "-c", askDefault},
		answer:   func(out []byte) (said, error) { return said{index: strings.TrimSpace(string(out))}, nil },
		variables: func(name string) bool {
			return strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "UV_") ||
				slices.Contains([]string{"VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"}, name)
		},
		files: func(env []string) []string {
			home := value(env, "HOME")
			return []string{
				"/etc/pip.conf", "/etc/xdg/pip/pip.conf", filepath.Join(home, ".pip/pip.conf"), filepath.Join(home, ".config/pip/pip.conf"),
				filepath.Join(value(env, "XDG_CONFIG_HOME"), "pip/pip.conf"), value(env, "PIP_CONFIG_FILE"),
				filepath.Join(value(env, "VIRTUAL_ENV"), "pip.conf"), value(env, "PIP_CERT"),
			}
		},
	}
}

// askPip asks the host's pip which index it uses, and collects the credentials,
// proxy and CA bundle that belong to it.
func askPip(ctx context.Context, env []string) (upstream.Config, error) {
	p, err := findPip(ctx, env)
	if err != nil {
		return upstream.Config{}, err
	}
	s, err := p.settings(ctx)
	if err != nil {
		return upstream.Config{}, err
	}
	if s.noIndex {
		return upstream.Config{}, fault.New(fault.ErrUnavailable, "this host's pip is set to use no index at all (no-index); name one under upstreams in the configuration file")
	}
	index, source := s.index, pipClient().byConfiguration()
	if index == "" {
		index, source = cmp.Or(value(env, "UV_DEFAULT_INDEX"), value(env, "UV_INDEX_URL")), "uv's environment"
	}
	if index == "" {
		source = pipClient().byDefault()
		if index, err = p.compiledIn(ctx); err != nil {
			return upstream.Config{}, err
		}
	}
	if s.extra {
		source += ", without its extra-index-url (one index keeps private names private)"
	}
	return complete(said{
		ecosystem: pkgref.Python, index: index, source: source, proxy: s.proxy,
		bundles: append([]bundle{{"pip's cert", cmp.Or(s.cert, value(env, "PIP_CERT"))}}, sharedBundles(env)...),
	}, env)
}

// pip is the host's pip: an interpreter that has it.
type pip struct {
	python string
	env    []string
}

// pipSettings are what its configuration files and environment say.
type pipSettings struct {
	index   string
	proxy   string
	cert    string
	noIndex bool
	extra   bool // there are extra indexes
}

// findPip returns the first interpreter of env's PATH that has pip, else the
// system's own.
func findPip(ctx context.Context, env []string) (pip, error) {
	for _, path := range programs(env, []string{"python3", "python"}, "/usr/bin", "/usr/local/bin") {
		p := pip{path, env}
		if _, err := p.run(ctx, "-c", "import pip"); err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			return pip{}, ctx.Err()
		}
	}
	return pip{}, fault.New(fault.ErrUnavailable, "this host has no pip to ask which index it uses: apt-get install -y python3-pip, or name one under upstreams in the configuration file")
}

// run asks python something.
func (p pip) run(ctx context.Context, args ...string) (string, error) {
	env := append(slices.Clip(p.env), "PYTHONSAFEPATH=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1")
	out, err := asked(ctx, env, p.python, args...)
	return string(out), err
}

// settings asks pip for what is configured. A command's own section goes
// before the global one, and the environment before both.
func (p pip) settings(ctx context.Context) (pipSettings, error) {
	text, err := p.run(ctx, "-m", "pip", "config", "list")
	if err != nil {
		return pipSettings{}, fault.Wrap(fault.ErrUnavailable, err, "this host's pip does not show its configuration: try python3 -m pip config list")
	}
	return parseSettings(text), nil
}

func parseSettings(text string) pipSettings {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		key, quoted, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok {
			found[key] = unquote(quoted)
		}
	}
	get := func(name string) string {
		return cmp.Or(found[":env:."+name], found["install."+name], found["global."+name])
	}
	no := strings.ToLower(get("no-index"))
	return pipSettings{
		index: get("index-url"), proxy: get("proxy"), cert: get("cert"),
		noIndex: no == "1" || no == "true" || no == "yes" || no == "on",
		extra:   get("extra-index-url") != "",
	}
}

// unquote undoes the quoting of a Python string literal, as far as URLs and
// paths need it.
func unquote(s string) string {
	if len(s) < 2 || (s[0] != '\'' && s[0] != '"') || s[len(s)-1] != s[0] {
		return s
	}
	s = s[1 : len(s)-1]
	return strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`, `\n`, "\n").Replace(s)
}

// compiledIn asks pip's own model for its default index.
func (p pip) compiledIn(ctx context.Context) (string, error) {
	text, err := p.run(ctx, "-c", askDefault)
	if err != nil || strings.TrimSpace(text) == "" {
		return "", fault.Wrap(fault.ErrUnavailable, err, "this host's pip does not say which index is its default; name one under upstreams in the configuration file")
	}
	return strings.TrimSpace(text), nil
}
