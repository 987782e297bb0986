package daemon

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// Registries are an installation's upstreams: the configured ones, else those
// that the machine's own clients use. An ecosystem without one is no error; a
// wrong entry of the configuration file is. env ("K=V") is the environment with which these are asked, as
// far as no sandbox could write what it names.
func Registries(ctx context.Context, cfg config.Config, paths config.Paths, env []string) (discover.Found, error) {
	trees := written.OrAnywhere(paths.Written())
	env = discover.Environment(env, trees)
	clients := all.Clients().Apart(trees)
	if len(cfg.Upstreams) == 0 {
		return clients.Current(ctx, paths.Upstreams(), env), nil
	}
	var f discover.Found
	for _, u := range cfg.Upstreams {
		ecosystem := pkgref.Ecosystem(u.Ecosystem)
		if u.Index == config.Auto {
			one := clients.Current(ctx, paths.Upstreams(), env, ecosystem)
			f.Upstreams, f.Missing = append(f.Upstreams, one.Upstreams...), append(f.Missing, one.Missing...)
			continue
		}
		up, err := configured(u, env)
		if err != nil {
			return discover.Found{}, err
		}
		f.Upstreams = append(f.Upstreams, up)
	}
	return f, nil
}

// configured is the upstream of an entry that names its index.
func configured(u config.Upstream, env []string) (upstream.Config, error) {
	return discover.Configured(discover.Named{
		Ecosystem: pkgref.Ecosystem(u.Ecosystem), Index: u.Index, Token: u.Token, Proxy: u.Proxy, CAFile: u.CAFile,
		Address: u.Address, Log: u.Log, LogURL: u.LogURL,
	}, env)
}

// namespaces are the configuration's, with the upstreams' own spelling of their
// indexes. One whose upstream was not found keeps a name that no upstream has:
// its packages are then asked of nobody.
func namespaces(cfg config.Config, f discover.Found) []policy.Namespace {
	var all []policy.Namespace
	for _, n := range cfg.Namespaces {
		owner := config.NormalIndex(n.Upstream)
		if n.Upstream == config.Auto {
			for _, u := range f.Upstreams {
				if string(u.Ecosystem) == n.Ecosystem && isDiscovered(cfg, u.Index) {
					owner = u.Index
				}
			}
		}
		all = append(all, policy.Namespace{Ecosystem: pkgref.Ecosystem(n.Ecosystem), Pattern: n.Pattern, Upstream: owner})
	}
	return all
}

// isDiscovered tells whether the configuration does not name an index.
func isDiscovered(cfg config.Config, index string) bool {
	for _, u := range cfg.Upstreams {
		if config.SameIndex(u.Index, index) {
			return false
		}
	}
	return true
}
