package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/network/authority"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// Finding is what is wrong with an installation before its daemon has started.
type Finding struct {
	Name string
	Err  error
	// Passing tells that a daemon starts all the same, and says so in its log.
	Passing bool
}

// Examine looks for what a daemon would refuse, or warn of. It changes nothing. New
// begins with it, and `serve --check` is it: so they can't differ in what it looks at.
func Examine(paths config.Paths, cfg config.Config) []Finding {
	found := examineSettings(paths, cfg)
	note := func(name string, err error) {
		if err != nil {
			found = append(found, Finding{Name: name, Err: err})
		}
	}
	if err := paths.CheckKept(); err != nil { // what is in them is not looked at then
		note("kept files", err)
		return found
	}
	if _, err := e2b.ReadKey(paths.AccessKey()); !errors.Is(err, fs.ErrNotExist) && cfg.Listen.Wanted() {
		note("access key", err)
	}
	note("audit key", audit.CheckKey(paths.Audit(), cmp.Or(cfg.Audit.KeyFile, paths.AuditKey())))
	note("certificate authority", authority.Check(paths.Authority()))
	note("clock", clock.Check(paths.Clock()))
	return slices.Concat(found, examinePools(paths, cfg))
}

// examineSettings finds what is wrong with the settings alone, whatever else the state directory has.
func examineSettings(paths config.Paths, cfg config.Config) (found []Finding) {
	_, hooks := hooksOf(cfg.Approvals, written.OrAnywhere(paths.Written()))
	for _, f := range []Finding{
		{Name: "webhooks", Err: hooks},
		{Name: "programs", Err: CheckHostPrograms(paths, cfg)},
		{Name: "default template", Err: knownTemplate("default_template", cfg.DefaultTemplate)},
	} {
		if f.Err != nil {
			found = append(found, f)
		}
	}
	return slices.Concat(found, examineUpstreams(paths, cfg))
}

// examineUpstreams: an entry that can't be used is wrong; one without a checksum
// database's key is left out, as spoken does it. Nobody is asked.
func examineUpstreams(paths config.Paths, cfg config.Config) (found []Finding) {
	for i, u := range cfg.Upstreams {
		if u.Index == config.Auto {
			continue
		}
		up, err := configured(u, hostEnvironment(paths))
		if err == nil {
			err = up.CheckDialled()
		}
		if err != nil {
			found = append(found, Finding{Name: "upstreams", Err: fault.Wrap(fault.ErrInvalid, err, "upstreams[%d] can't be used", i)})
			continue
		}
		if up.Log == "" {
			continue
		}
		if _, err := verifierOf(up); err != nil {
			found = append(found, Finding{Name: "upstreams", Passing: true, Err: fault.Wrap(fault.ErrInvalid, err, "upstreams[%d] is not used", i)})
		}
	}
	return found
}

func knownTemplate(key, name string) error {
	names := []string{template.NameAuto}
	for _, k := range (&template.Store{}).Known() {
		names = append(names, k.Name)
	}
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return fault.Invalid("the configuration is wrong: %s is %.60q, and there is no such template; known are %s", key, name, strings.Join(names, ", "))
}

// examinePools: a template that there can't be is wrong, a policy that there is not yet
// may come.
func examinePools(paths config.Paths, cfg config.Config) (found []Finding) {
	if len(cfg.Pool) == 0 {
		return nil
	}
	dir := paths.NamedPolicies()
	missing := func(name string) error { return fault.New(fault.ErrNotFound, "there is no policy %.60q", name) }
	if _, err := os.Stat(dir); err == nil { // to open one that is not there makes it
		if named, err := namedpolicy.Open(dir, func(string) []string { return nil }); err == nil {
			missing = func(name string) error { _, err := named.Get(name); return err }
		}
	}
	for i, p := range cfg.Pool {
		key := fmt.Sprintf("pool[%d]", i)
		if err := knownTemplate(key+".template", p.Template); err != nil {
			found = append(found, Finding{Name: "pool", Err: err})
		}
		if p.Policy == "" || p.Policy == namedpolicy.DefaultName {
			continue
		}
		if err := missing(p.Policy); err != nil {
			found = append(found, Finding{Name: "pool", Passing: true, Err: fault.Wrap(fault.ErrInvalid, err, "%s.policy is %.60q, so nothing is kept ready for it", key, p.Policy)})
		}
	}
	return found
}

// examine refuses what can't be served.
func (d *Daemon) examine(context.Context) error {
	return heed(d.opts.Log, d.opts.From, Examine(d.opts.Paths, d.opts.Config))
}

// heed gives the first finding that can't pass, and writes the others to the log: each with its place in the file.
func heed(log *slog.Logger, from config.Source, found []Finding) error {
	for _, f := range found {
		if !f.Passing {
			return from.Place(f.Err)
		}
		log.Warn("the configuration asks for something that is missing", "what", f.Name, "err", from.Place(f.Err))
	}
	return nil
}
