package daemon

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strings"

	installers "github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/all"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// findRegistries finds the upstreams. An ecosystem without one is no error: the
// daemon runs without its packages until a template's client can be asked, and
// `doctor` says what is missing.
func (d *Daemon) findRegistries(ctx context.Context) error {
	found, err := Registries(ctx, d.opts.Config, d.opts.Paths, os.Environ())
	if err != nil {
		return err
	}
	for _, m := range found.Missing {
		d.opts.Log.Warn("no registry is known", "ecosystem", m.Ecosystem, "err", m.Why)
	}
	d.registries = found
	return nil
}

// spoken are the upstreams that this build has a protocol for, as the gateway
// wants them: a checksum database with its key. One whose key is not known is
// left out, for nothing of its upstream could be verified.
func (d *Daemon) spoken(ups []upstream.Config) []upstream.Config {
	var known []upstream.Config
	for _, up := range ups {
		if protocolOf(up.Ecosystem) == nil {
			continue
		}
		if up.Log != "" {
			verifier, err := verifierOf(up)
			if err != nil {
				d.opts.Log.Error("an upstream is not used", "ecosystem", up.Ecosystem, "err", err)
				continue
			}
			up.Log = verifier
		}
		known = append(known, up)
	}
	return known
}

// protocolOf is nil for an ecosystem whose registries this build doesn't speak to.
func protocolOf(e pkgref.Ecosystem) ecosystem.Protocol {
	for _, p := range all.Protocols() {
		if p.Ecosystem() == e {
			return p
		}
	}
	return nil
}

// filesElsewhere tells whether an ecosystem's files may lie on other hosts than its index.
func filesElsewhere(e pkgref.Ecosystem) bool {
	_, probes := protocolOf(e).(ecosystem.Prober)
	return probes
}

// verifierOf is the verifier of an upstream's transparency log, which it has.
func verifierOf(up upstream.Config) (string, error) {
	witness, ok := protocolOf(up.Ecosystem).(ecosystem.Witness)
	if !ok {
		return "", fault.Invalid("registries of %s have no transparency log; take %q out", up.Ecosystem, up.Log)
	}
	return witness.VerifierOf(up.Log)
}

// keepHosts remembers the file hosts among the names that the gateway answers
// for, so that a start without a network knows them. Only where there is one index
// with files on other hosts is it clear whose they are. Failing to is no more than a slower next start.
func (g *gatewayProcess) keepHosts(names []string) {
	var spread []upstream.Config
	indexes := map[string]bool{}
	for _, up := range g.currentUpstreams() {
		if index, err := url.Parse(up.Index); err == nil {
			indexes[index.Hostname()] = true
		}
		if filesElsewhere(up.Ecosystem) {
			spread = append(spread, up)
		}
	}
	if len(spread) != 1 || !isDiscovered(g.d.opts.Config, spread[0].Index) {
		return
	}
	up := spread[0]
	up.FileHosts = slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return indexes[n] || strings.HasSuffix(n, ownDomain)
	})
	if err := discover.Save(g.d.opts.Paths.Upstreams(), up); err != nil {
		g.d.opts.Log.Warn("the registry's host names can't be kept", "err", err)
	}
}

// ownDomain has the names that the gateway answers for itself.
const ownDomain = ".cofferdam.internal"

// learnFromTemplate asks the debian template's clients where the host has none:
// after the template was built, or at a start that finds it built. Their answers are kept, and a new gateway takes them up.
func (d *Daemon) learnFromTemplate(ctx context.Context) {
	d.learning.Lock()
	defer d.learning.Unlock()
	if len(d.registries.Missing) == 0 || !d.canAsk(ctx) {
		return
	}
	var still []discover.Missing
	var learnt []upstream.Config
	for _, m := range d.registries.Missing {
		up, err := d.askTemplate(ctx, template.NameDebian, m.Ecosystem)
		if err != nil {
			d.opts.Log.Warn("the template does not say which registry to use", "ecosystem", m.Ecosystem, "err", err)
			still = append(still, m)
			continue
		}
		learnt = append(learnt, up)
	}
	d.registries.Missing = still
	d.takeUp(learnt)
}

// canAsk tells whether the debian template is there and has all the clients.
func (d *Daemon) canAsk(ctx context.Context) bool {
	t, err := d.templates.Get(ctx, template.NameDebian)
	return err == nil && !d.templates.Outdated(t)
}

// takeUp keeps upstreams that were missing, and has a new gateway use them;
// d.learning is held.
func (d *Daemon) takeUp(learnt []upstream.Config) {
	if len(learnt) == 0 {
		return
	}
	if err := discover.Save(d.opts.Paths.Upstreams(), learnt...); err != nil {
		d.opts.Log.Warn("what was learnt of the registries can't be kept", "err", err)
	}
	d.registries.Upstreams = append(d.registries.Upstreams, learnt...)
	d.gateway.useUpstreams(d.registries.Upstreams)
}

// askTemplate asks a template's client of an ecosystem, in a sandbox that may
// do nothing else.
func (d *Daemon) askTemplate(ctx context.Context, name string, ecosystem pkgref.Ecosystem) (upstream.Config, error) {
	nothing, err := policy.Parse("the daemon's own question", []byte(httpapi.DefaultPolicy))
	if err != nil {
		return upstream.Config{}, err
	}
	req := sandbox.Request{
		Task: "which registry the template's client uses", Template: name,
		Policy: nothing, PolicyText: []byte(httpapi.DefaultPolicy), User: "daemon", HostUID: os.Geteuid(), HostGID: os.Getegid(),
	}
	return installers.Clients().FromTemplate(ctx, ecosystem, hostEnvironment(d.opts.Paths), func(ctx context.Context, argv []string) ([]byte, error) {
		return d.sandboxes.Output(ctx, req, argv)
	})
}
