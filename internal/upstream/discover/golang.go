package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

func goClient() client {
	return client{
		ecosystem: pkgref.Go, name: "go", registry: "module proxy", ask: askGo,
		question: append([]string{"go"}, goQuestion()...),
		answer: func(out []byte) (said, error) {
			s, err := parseGoEnv(out)
			if err != nil {
				return said{}, err
			}
			return s.said()
		},
		variables: func(name string) bool {
			return slices.Contains([]string{"GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOENV", "GOROOT", "XDG_CONFIG_HOME"}, name)
		},
		files: func(env []string) []string {
			config := cmp.Or(value(env, "XDG_CONFIG_HOME"), filepath.Join(value(env, "HOME"), ".config"))
			return []string{cmp.Or(value(env, "GOENV"), filepath.Join(config, "go/env"))}
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

// said takes the first proxy of the list: the gateway asks one upstream, and
// fetching directly from a repository is not for it.
func (s goSettings) said() (said, error) {
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
		return said{}, fault.New(fault.ErrUnavailable, "go is set to use no module proxy (GOPROXY is direct or off), and the gateway fetches from no repository directly; name a proxy under upstreams in the configuration file")
	}
	found := said{ecosystem: pkgref.Go, index: proxy}
	if s.SumDB != "off" {
		log, at, _ := strings.Cut(strings.TrimSpace(s.SumDB), " ")
		found.log, found.logURL = log, strings.TrimSpace(at)
	}
	return found, nil
}

// askGo asks the host's go command which proxy and checksum database it uses.
func askGo(ctx context.Context, env []string) (upstream.Config, error) {
	s, err := goSays(ctx, env)
	if err != nil {
		return upstream.Config{}, err
	}
	found, err := s.said()
	if err != nil {
		return upstream.Config{}, err
	}
	c := goClient()
	found.source = c.byDefault()
	if value(env, "GOPROXY") != "" || s.inFile("GOPROXY") {
		found.source = c.byConfiguration()
	}
	if found.log == "" {
		found.source += ", without a checksum database (GOSUMDB=off)"
	}
	if s.Private != "" || (s.NoProxy != "" && s.NoProxy != "none") {
		found.source += ", without its private modules (name their proxy under upstreams and namespaces)"
	}
	found.bundles = sharedBundles(env)
	return complete(found, env)
}

// inFile tells whether the go command's own file sets a variable.
func (s goSettings) inFile(name string) bool {
	raw, err := readAtMost(s.Env, maxAnswer)
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

func goSays(ctx context.Context, env []string) (goSettings, error) {
	env = append(slices.Clip(env), "GOTOOLCHAIN=local", "GOWORK=off", "GOFLAGS=")
	var failure error
	for _, path := range programs(env, []string{"go"}, "/usr/local/go/bin", "/usr/local/bin", "/usr/bin") {
		out, err := asked(ctx, env, path, goQuestion()...)
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

// FromGoSource reads the defaults of a Go distribution from its file go.env.
// Nothing is run.
func FromGoSource(goEnv []byte, env []string) (upstream.Config, error) {
	return goClient().unconfigured(goEnv, func(text []byte) (said, error) {
		var s goSettings
		for line := range strings.Lines(string(text)) {
			switch key, v, _ := strings.Cut(strings.TrimSpace(line), "="); key {
			case "GOPROXY":
				s.Proxy = v
			case "GOSUMDB":
				s.SumDB = v
			}
		}
		return s.said()
	}, goClient().bySource(), env)
}
