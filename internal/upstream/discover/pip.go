package discover

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

const (
	// askDefault prints the index that pip uses when nothing is configured.
	askDefault = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
	maxAnswer  = 256 << 10
	patience   = 30 * time.Second // for one question to pip
)

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
	var candidates []string
	for _, dir := range filepath.SplitList(value(env, "PATH")) {
		// Not what lies in a working directory: that is the agents' to write.
		if filepath.IsAbs(dir) {
			candidates = append(candidates, filepath.Join(dir, "python3"), filepath.Join(dir, "python"))
		}
	}
	candidates = append(candidates, "/usr/bin/python3", "/usr/local/bin/python3")
	asked := map[string]bool{}
	for _, python := range candidates {
		path, err := exec.LookPath(python)
		if err != nil || asked[path] {
			continue
		}
		asked[path] = true
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

// run asks python something, in a folder where nobody can have put modules
// that it would take for its own.
func (p pip) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.python, args...)
	cmd.Dir = "/"
	cmd.Env = append(slices.Clip(p.env), "PYTHONSAFEPATH=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1")
	cmd.WaitDelay = time.Second
	out := &limited{left: maxAnswer}
	cmd.Stdout = out
	err := cmd.Run()
	return out.String(), err
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

// limited keeps the first bytes of an output and fails the writer afterwards.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, io.ErrShortWrite
	}
	l.left -= len(b)
	return l.Buffer.Write(b)
}
