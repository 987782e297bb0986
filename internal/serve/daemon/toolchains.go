package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// toolFetcher brings a template's tools through the installation's own gateway,
// as a guest with an identity of its own: decided by a policy that names exactly
// these releases, verified, and recorded before a byte comes.
type toolFetcher struct{ d *Daemon }

// toolsTimeout bounds one file.
const toolsTimeout = 15 * time.Minute

var _ template.Fetcher = toolFetcher{}

// Fetch implements template.Fetcher.
func (f toolFetcher) Fetch(ctx context.Context, name string, wanted []template.Artifact, dir string, report func(template.Progress)) (origins []template.Origin, err error) {
	run := admission.Run{
		Sandbox: "build-" + randomHex(), Run: "template-" + name + "-" + time.Now().UTC().Format("20060102T150405Z"),
		Task: "the tools of the template " + name, User: "daemon", Template: name, Started: time.Now(),
	}
	if run.Policy, err = policy.Parse("the template's pins", []byte(pinPolicy(wanted))); err != nil {
		return nil, err
	}
	if err := f.d.door.Register(run); err != nil {
		return nil, err
	}
	defer f.d.door.Unregister(run.Sandbox)
	if err := f.d.door.SandboxStarted(ctx, run.Sandbox); err != nil {
		return nil, err
	}
	defer func() {
		reason := "all was fetched"
		if err != nil {
			reason = "the build failed"
		}
		err = errors.Join(err, f.d.door.SandboxEnded(context.WithoutCancel(ctx), run.Sandbox, reason))
	}()
	for i, a := range wanted {
		report(template.Progress{Step: "tools", Detail: fmt.Sprintf("%s %s (%d of %d)", a.Name, a.Version, i+1, len(wanted)), Percent: 1})
		source, err := f.fetchOne(ctx, run.Sandbox, a, dir, report)
		if err != nil {
			return nil, err
		}
		origin, err := f.d.recorded(ctx, run, a)
		if err != nil {
			return nil, err
		}
		if origin.URL == "" {
			origin.URL = source
		}
		origins = append(origins, origin)
	}
	return origins, nil
}

// fetchOne makes sure that the artifact's upstream is known, and fetches it.
func (f toolFetcher) fetchOne(ctx context.Context, sandbox string, a template.Artifact, dir string, report func(template.Progress)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolsTimeout)
	defer cancel()
	up, err := f.d.toolUpstream(ctx, a.Ecosystem, dir, report)
	if err != nil {
		return "", err
	}
	ca, _, err := f.d.gateway.trusted(ctx)
	if err != nil {
		return "", err
	}
	c, err := newGatewayClient(f.d.opts.Paths.Uplink(), sandbox, ca, up)
	if err != nil {
		return "", err
	}
	defer c.close()
	location, err := c.locate(ctx, a)
	if err != nil {
		return "", err
	}
	return location, c.download(ctx, location, filepath.Join(dir, a.File))
}

// recorded is what the log has of an artifact that was served to a run.
func (d *Daemon) recorded(ctx context.Context, run admission.Run, a template.Artifact) (template.Origin, error) {
	filter := audit.Filter{Run: run.Run, Sandbox: run.Sandbox, Outcomes: []audit.Outcome{audit.Served}}
	var found template.Origin
	for r, err := range d.log.Records(ctx, filter) {
		if err != nil {
			return template.Origin{}, err
		}
		if r.Package == a.Name && r.InstalledVersion == a.Version && r.Ecosystem == string(a.Ecosystem) {
			found = template.Origin{URL: r.SourceURL, SHA256: r.SHA256, Run: run.Run, Record: r.Seq}
		}
	}
	if found.Run == "" {
		return found, fault.New(fault.ErrUnavailable, "%s %s came without a record, so it is not used", a.Name, a.Version)
	}
	return found, nil
}

// pinPolicy allows exactly these releases.
func pinPolicy(wanted []template.Artifact) string {
	versions := map[pkgref.Ecosystem]map[string][]string{}
	for _, a := range wanted {
		if versions[a.Ecosystem] == nil {
			versions[a.Ecosystem] = map[string][]string{}
		}
		versions[a.Ecosystem][a.Name] = append(versions[a.Ecosystem][a.Name], a.Version)
	}
	var b strings.Builder
	b.WriteString("name: template-tools\nversion: \"1\"\npackages:\n  default: deny\n  sdist: deny\n  toolchains: allow\n  install_scripts: allow\nallowed_packages:\n")
	for _, ecosystem := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(&b, "  %s:\n", ecosystem)
		for _, name := range slices.Sorted(maps.Keys(versions[ecosystem])) {
			specifier := strings.Join(versions[ecosystem][name], " || ")
			if !ecosystem.Traits().XRanges {
				specifier = "==" + specifier // a template has one release of each
			}
			fmt.Fprintf(&b, "    - { name: %q, version: %q }\n", name, specifier)
		}
	}
	return b.String()
}

// toolUpstream is the upstream that tools of an ecosystem come from. Where the
// host has no client to ask, one that tells its default in its own source is read from a
// tool that was fetched, and another is asked in a sandbox of a template without tools. dir
// has what was fetched so far.
func (d *Daemon) toolUpstream(ctx context.Context, ecosystem pkgref.Ecosystem, dir string, report func(template.Progress)) (upstream.Config, error) {
	d.learning.Lock()
	defer d.learning.Unlock()
	if up, ok := d.knownUpstream(ecosystem); ok {
		return up, nil
	}
	i := slices.IndexFunc(d.registries.Missing, func(m discover.Missing) bool { return m.Ecosystem == ecosystem })
	if i < 0 {
		return upstream.Config{}, fault.New(fault.ErrUnavailable, "the configuration file names no upstream for %s, and the template's tools come from there: add one, or { ecosystem: %s, index: auto }", ecosystem, ecosystem)
	}
	up, err := d.findForTools(ctx, ecosystem, dir, report)
	if err != nil {
		return upstream.Config{}, fault.Wrap(fault.ErrUnavailable, err, "it is not known which registry to fetch tools of %s from (%v)", ecosystem, d.registries.Missing[i].Why)
	}
	d.registries.Missing = slices.Delete(d.registries.Missing, i, i+1)
	d.takeUp([]upstream.Config{up})
	return up, nil
}

// knownUpstream is the first of an ecosystem; d.learning is held.
func (d *Daemon) knownUpstream(ecosystem pkgref.Ecosystem) (upstream.Config, bool) {
	for _, up := range d.registries.Upstreams {
		if up.Ecosystem == ecosystem {
			return up, true
		}
	}
	return upstream.Config{}, false
}

func (d *Daemon) findForTools(ctx context.Context, ecosystem pkgref.Ecosystem, dir string, report func(template.Progress)) (upstream.Config, error) {
	client, err := all.Clients().Of(ecosystem)
	if err != nil {
		return upstream.Config{}, err
	}
	if client.Source.Tool != "" {
		definitions, err := d.toolFile(dir, client.Source)
		if err != nil {
			return upstream.Config{}, err
		}
		return all.Clients().FromSource(ecosystem, definitions, hostEnvironment(d.opts.Paths))
	}
	detail := fmt.Sprintf("this host has no %s to ask for its %s: a small template is built and asked", client.Name, client.Registry)
	report(template.Progress{Step: "tools", Detail: detail, Percent: 1})
	if _, err := d.templates.Build(ctx, template.NameBase, nil); err != nil {
		return upstream.Config{}, err
	}
	up, err := d.askTemplate(ctx, template.NameBase, ecosystem)
	if rerr := d.templates.Remove(ctx, template.NameBase); rerr != nil {
		d.opts.Log.Warn("the small template can't be removed", "err", rerr)
	}
	return up, err
}

// toolFile is a file of a tool that was fetched: in this build's folder, or where the
// store keeps what earlier builds fetched.
func (d *Daemon) toolFile(dir string, f discover.ToolFile) ([]byte, error) {
	data, err := template.ToolFile(dir, f.Tool, f.Path)
	if err != nil {
		return d.templates.ToolFile(f.Tool, f.Path)
	}
	return data, nil
}

// hostOf is the name under which sandboxes see an upstream.
func hostOf(up upstream.Config) (*url.URL, error) {
	u, err := url.Parse(up.Index)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: u.Hostname(), Path: u.Path, RawPath: u.RawPath}, nil
}

func randomHex() string {
	b := make([]byte, 6)
	rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}
