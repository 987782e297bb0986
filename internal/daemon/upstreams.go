package daemon

import (
	"context"
	"errors"
	"net/url"
	"os"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/config"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/template"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/upstream/discover"
)

// findUpstreams takes the configured registries; else what the machine's own
// client uses. None at all is no error: the daemon runs without packages until
// a template's client can be asked, and `doctor` says what is missing.
func (d *Daemon) findUpstreams(ctx context.Context) ([]upstream.Config, error) {
	if list := d.opts.Config.Upstreams; len(list) > 0 {
		return configured(list)
	}
	found, err := discover.Current(ctx, d.opts.Paths.Upstreams(), os.Environ())
	if errors.Is(err, fault.ErrUnavailable) {
		d.opts.Log.Warn("no registry is known", "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []upstream.Config{found}, nil
}

// configured translates the configuration file's upstreams.
func configured(list []config.Upstream) ([]upstream.Config, error) {
	var all []upstream.Config
	for _, c := range list {
		up, err := discover.Configured(pkgref.Ecosystem(c.Ecosystem), c.Index, c.Proxy, c.CAFile, os.Environ())
		if err != nil {
			return nil, err
		}
		up.Address = c.Address
		all = append(all, up)
	}
	return all, nil
}

// clientEnv names a mirror to pip and uv, which would ask their compiled-in
// index, whose name leads nowhere then. Sandboxes see every upstream on port 443
// and without credentials.
func (g *gatewayProcess) clientEnv() map[string]string {
	for _, up := range g.current() {
		index, err := url.Parse(up.Index)
		if err != nil || up.Ecosystem != pkgref.Python || up.Source == discover.SourceDefault {
			continue
		}
		seen := "https://" + index.Hostname() + index.EscapedPath()
		return map[string]string{"PIP_INDEX_URL": seen, "UV_DEFAULT_INDEX": seen}
	}
	return nil
}

// keepHosts remembers the file hosts among the names that the gateway answers
// for, so that a start without a network knows them. Failing to is no more than
// a slower next start.
func (g *gatewayProcess) keepHosts(names []string) {
	ups := g.current()
	if len(g.d.opts.Config.Upstreams) > 0 || len(ups) != 1 {
		return
	}
	up := ups[0]
	index, err := url.Parse(up.Index)
	if err != nil {
		return
	}
	up.FileHosts = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == index.Hostname() })
	if err := discover.Save(g.d.opts.Paths.Upstreams(), up); err != nil {
		g.d.opts.Log.Warn("the registry's host names can't be kept", "err", err)
	}
}

// learnFromTemplate asks the debian template's client where the host has none:
// after the template was built, or at a start that finds it built. What it says
// is kept, and a new gateway takes it up.
func (d *Daemon) learnFromTemplate(ctx context.Context) {
	if d.gateway.knowsUpstreams() {
		return
	}
	if _, err := d.templates.Get(ctx, template.NameDebian); err != nil {
		return
	}
	nothing, err := policy.Parse("the daemon's own question", []byte(httpapi.DefaultPolicy))
	if err != nil {
		d.opts.Log.Error("the built-in policy is wrong", "err", err)
		return
	}
	req := sandbox.Request{
		Task: "which registry the template's client uses", Template: template.NameDebian,
		Policy: nothing, PolicyText: []byte(httpapi.DefaultPolicy), User: "daemon", HostUID: os.Geteuid(), HostGID: os.Getegid(),
	}
	found, err := discover.FromTemplate(ctx, os.Environ(), func(ctx context.Context, argv []string) ([]byte, error) {
		return d.sandboxes.Output(ctx, req, argv)
	})
	if err == nil {
		err = discover.Save(d.opts.Paths.Upstreams(), found)
	}
	if err != nil {
		d.opts.Log.Warn("the template does not say which registry to use", "err", err)
		return
	}
	d.gateway.use([]upstream.Config{found})
}
