package daemon

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/template"
)

// startManager makes the manager and lets it take over what lives.
func (d *Daemon) startManager(ctx context.Context) error {
	p := d.opts.Paths
	d.templates = template.NewStore(p.Templates(), template.Options{
		InUse:   func(digest string) bool { return d.sandboxes != nil && d.sandboxes.Uses(digest) },
		Fetcher: toolFetcher{d},
	})
	engines := all.Engines(all.Config{
		Runsc: FindRunsc(d.opts.Config.Runsc, d.opts.Executable), RunscDir: p.Runsc(), StateDir: p.State,
	}, d.keeper)
	d.sandboxes = sandbox.New(sandbox.Config{
		Engines: engines, DefaultEngine: gvisor.Name, Keeper: d.keeper, Templates: d.templates, Door: d.door,
		Trust: d.gateway.trusted, ClientEnv: d.gateway.clientEnv, AgentDir: p.Agent(), EmptyFile: filepath.Join(p.Agent(), emptyName),
		Own: []string{p.State, p.Runtime}, PolicyDir: p.Policies(), BaselineDir: p.Baselines(),
		DefaultTemplate: d.opts.Config.DefaultTemplate, Log: d.opts.Log,
	})
	return d.sandboxes.Recover(ctx)
}

// FindRunsc looks where the configuration says, beside the binary, then in PATH.
// A path that does not exist is returned all the same: the engine says so.
func FindRunsc(configured, executable string) string {
	if configured != "" {
		return configured
	}
	beside := filepath.Join(filepath.Dir(executable), "runsc")
	if path, err := exec.LookPath(beside); err == nil {
		return path
	}
	if path, err := exec.LookPath("runsc"); err == nil {
		return path
	}
	return beside
}
