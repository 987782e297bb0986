package gocmd

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
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
		Ecosystem: pkgref.Go, Name: "go", Registry: "module proxy", Ask: askGoCommand,
		Programs: programs(), Places: places(),
		Question: append([]string{"go"}, goQuestion()...),
		Answer: func(out []byte) (discover.Said, error) {
			s, err := parseGoEnv(out)
			if err != nil {
				return discover.Said{}, err
			}
			return s.saidProxy()
		},
		Definitions: readDefaults,
		Variables: func(name string) bool {
			return slices.Contains([]string{"GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOENV", "GOROOT", "XDG_CONFIG_HOME"}, name)
		},
		Files: func(env []string) []string {
			config := cmp.Or(discover.Value(env, "XDG_CONFIG_HOME"), filepath.Join(discover.Value(env, "HOME"), ".config"))
			return []string{cmp.Or(discover.Value(env, "GOENV"), filepath.Join(config, "go/env"))}
		},
	}
}

// goSettings are what the go command makes of its file and the environment.
type goSettings struct {
	Proxy   string `json:"GOPROXY"`
	SumDB   string `json:"GOSUMDB"`
	Private string `json:"GOPRIVATE"`
	NoProxy string `json:"GONOPROXY"`
	Env     string `json:"GOENV"` // its file
}

func goQuestion() []string {
	return []string{"env", "-json", "GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GOENV"}
}

func parseGoEnv(out []byte) (goSettings, error) {
	var s goSettings
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fault.Wrap(fault.ErrUnavailable, err, "the go command's environment is no JSON")
	}
	return s, nil
}

// saidProxy takes the first proxy of the list: the gateway asks one upstream, and
// fetching directly from a repository is not for it.
func (s goSettings) saidProxy() (discover.Said, error) {
	var proxy string
	for _, entry := range strings.FieldsFunc(s.Proxy, func(r rune) bool { return r == ',' || r == '|' }) {
		entry = strings.TrimSpace(entry)
		if entry == "off" {
			break
		}
		if entry != "" && entry != "direct" && entry != "noproxy" {
			proxy = entry
			break
		}
	}
	if proxy == "" {
		// GOPROXY itself is not shown: it may hold a password.
		return discover.Said{}, fault.New(fault.ErrUnavailable, "go is set to use no module proxy (GOPROXY is direct or off), and the gateway fetches from no repository directly; name a proxy under upstreams in the configuration file")
	}
	found := discover.Said{Index: proxy}
	if s.SumDB != "off" {
		log, at, _ := strings.Cut(strings.TrimSpace(s.SumDB), " ")
		found.Log, found.LogURL = log, strings.TrimSpace(at)
	}
	return found, nil
}

// askGoCommand asks the host's go command which proxy and checksum database it uses.
func askGoCommand(ctx context.Context, env []string) (discover.Said, error) {
	s, err := goSays(ctx, env)
	if err != nil {
		return discover.Said{}, err
	}
	found, err := s.saidProxy()
	if err != nil {
		return discover.Said{}, err
	}
	c := clientOfHost()
	found.Source = c.ByDefault()
	if discover.Value(env, "GOPROXY") != "" || s.inFile("GOPROXY") {
		found.Source = c.ByConfiguration()
	}
	if found.Log == "" {
		found.Source += ", without a checksum database (GOSUMDB=off)"
	}
	if s.Private != "" || (s.NoProxy != "" && s.NoProxy != "none") {
		found.Source += ", without its private modules (name their proxy under upstreams and namespaces)"
	}
	return found, nil
}

// inFile tells whether the go command's own file sets a variable.
func (s goSettings) inFile(name string) bool {
	raw, err := discover.ReadAtMost(s.Env, discover.MaxAnswer)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(strings.TrimSpace(line), name+"=") {
			return true
		}
	}
	return false
}

// programs are the client's names, and places where it is looked for after PATH.
func programs() []string { return []string{"go"} }
func places() []string   { return []string{"/usr/local/go/bin", "/usr/local/bin", "/usr/bin"} }

func goSays(ctx context.Context, env []string) (goSettings, error) {
	env = append(slices.Clip(env), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	var failure error
	for _, path := range discover.Programs(env, programs(), places()...) {
		out, err := discover.Asked(ctx, env, path, goQuestion()...)
		if ctx.Err() != nil {
			return goSettings{}, ctx.Err()
		}
		if err == nil {
			return parseGoEnv(out)
		}
		failure = cmp.Or(failure, err)
	}
	if failure != nil {
		return goSettings{}, fault.Wrap(fault.ErrUnavailable, failure, "this host's go does not show its environment: try go env")
	}
	return goSettings{}, fault.New(fault.ErrUnavailable, "this host has no go to ask which module proxy it uses; the template debian has one, or name a proxy under upstreams in the configuration file")
}

// readDefaults reads the defaults of a Go distribution from its file go.env.
func readDefaults(source []byte) (discover.Said, error) {
	var s goSettings
	for line := range strings.Lines(string(source)) {
		switch key, v, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "GOPROXY":
			s.Proxy = v
		case "GOSUMDB":
			s.SumDB = v
		}
	}
	return s.saidProxy()
}
