package pip

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// askDefault prints the index that pip uses when nothing is configured.
const askDefault = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"

// Discover implements installer.Discoverer.
func (client) Discover() discover.Client { return clientOfHost() }

func clientOfHost() discover.Client {
	return discover.Client{
		Ecosystem: pkgref.Python, Name: "pip", Registry: "index", Ask: askPip,
		Programs: programs(), Places: places(),
		Question: []string{"python3", "-I", "-c", askDefault},
		Answer: func(out []byte) (discover.Said, error) {
			return discover.Said{Index: strings.TrimSpace(string(out))}, nil
		},
		Variables: func(name string) bool {
			return strings.HasPrefix(name, "PIP_") || strings.HasPrefix(name, "UV_") ||
				slices.Contains([]string{"VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"}, name)
		},
		Files: func(env []string) []string {
			home := discover.Value(env, "HOME")
			return []string{
				"/etc/pip.conf", "/etc/xdg/pip/pip.conf", filepath.Join(home, ".pip/pip.conf"), filepath.Join(home, ".config/pip/pip.conf"),
				filepath.Join(discover.Value(env, "XDG_CONFIG_HOME"), "pip/pip.conf"), discover.Value(env, "PIP_CONFIG_FILE"),
				filepath.Join(discover.Value(env, "VIRTUAL_ENV"), "pip.conf"), discover.Value(env, "PIP_CERT"),
			}
		},
	}
}

// programs are the names of interpreters, and places where they are looked for after PATH.
func programs() []string { return []string{"python3", "python"} }
func places() []string   { return []string{"/usr/bin", "/usr/local/bin"} }

// askPip asks the host's pip which index it uses, and collects the credentials,
// proxy and CA bundle that belong to it.
func askPip(ctx context.Context, env []string) (discover.Said, error) {
	p, err := findPip(ctx, env)
	if err != nil {
		return discover.Said{}, err
	}
	s, err := p.settings(ctx)
	if err != nil {
		return discover.Said{}, err
	}
	if s.noIndex {
		return discover.Said{}, fault.New(fault.ErrUnavailable, "this host's pip is set to use no index at all (no-index); name one under upstreams in the configuration file")
	}
	index, source := s.index, clientOfHost().ByConfiguration()
	if index == "" {
		index, source = cmp.Or(discover.Value(env, "UV_DEFAULT_INDEX"), discover.Value(env, "UV_INDEX_URL")), "uv's environment"
	}
	if index == "" {
		source = clientOfHost().ByDefault()
		if index, err = p.compiledIn(ctx); err != nil {
			return discover.Said{}, err
		}
	}
	if s.extra {
		source += ", without its extra-index-url (one index keeps private names private)"
	}
	return discover.Said{
		Index: index, Source: source, Proxy: s.proxy,
		Bundles: []discover.Bundle{{What: "pip's cert", Path: cmp.Or(s.cert, discover.Value(env, "PIP_CERT"))}},
	}, nil
}

// interpreter is the host's pip: a Python that has it.
type interpreter struct {
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
func findPip(ctx context.Context, env []string) (interpreter, error) {
	for _, path := range discover.Programs(env, programs(), places()...) {
		p := interpreter{path, env}
		if _, err := p.runPython(ctx, "-c", "import pip"); err == nil {
			return p, nil
		}
		if ctx.Err() != nil {
			return interpreter{}, ctx.Err()
		}
	}
	return interpreter{}, fault.New(fault.ErrUnavailable, "this host has no pip to ask which index it uses: apt-get install -y python3-pip, or name one under upstreams in the configuration file")
}

// runPython asks python something.
func (p interpreter) runPython(ctx context.Context, args ...string) (string, error) {
	env := append(slices.Clip(p.env), "PYTHONSAFEPATH=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1")
	out, err := discover.Asked(ctx, env, p.python, args...)
	return string(out), err
}

// settings asks pip for what is configured. A command's own section goes
// before the global one, and the environment before both.
func (p interpreter) settings(ctx context.Context) (pipSettings, error) {
	text, err := p.runPython(ctx, "-m", "pip", "config", "list")
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
			found[key] = discover.Unquote(quoted)
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

// compiledIn asks pip's own model for its default index.
func (p interpreter) compiledIn(ctx context.Context) (string, error) {
	text, err := p.runPython(ctx, "-c", askDefault)
	if err != nil || strings.TrimSpace(text) == "" {
		return "", fault.Wrap(fault.ErrUnavailable, err, "this host's pip does not say which index is its default; name one under upstreams in the configuration file")
	}
	return strings.TrimSpace(text), nil
}
