package daemon

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// settings is the configuration as it counts now, of which some keys are taken while the daemon works.
type settings struct {
	reading sync.Mutex // held while the file is read anew and taken

	mu  sync.Mutex // guards now
	now config.Config
}

func (s *settings) getConfig() config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *settings) setConfig(c config.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = c
}

// reload reads the configuration anew and takes what config.Reloaded names. It is on record before it counts. Of
// a file that is wrong nothing is taken.
func reload(ctx context.Context, d *Daemon, by string) (api.ConfigReload, error) {
	if d.opts.ReadConfig == nil {
		return api.ConfigReload{}, fault.New(fault.ErrUnavailable, "this daemon was started without a configuration file that it could read again")
	}
	d.settings.reading.Lock()
	defer d.settings.reading.Unlock()
	now, from, err := d.opts.ReadConfig()
	if err != nil {
		return api.ConfigReload{}, err
	}
	if err := heed(d.opts.Log, from, slices.Concat(examineSettings(d.opts.Paths, now), examinePools(d.opts.Paths, now))); err != nil {
		return api.ConfigReload{}, err
	}
	taken, change := d.settings.getConfig().Take(now)
	answer := api.ConfigReload{File: from.Path, SHA256: from.SHA256, Reloaded: append([]string{}, change.Reloaded...), AtStart: append([]string{}, change.AtStart...)}
	if len(change.Reloaded) == 0 && len(change.AtStart) == 0 {
		return answer, nil
	}
	if _, err := d.records.Append(ctx, audit.Record{
		Kind: audit.KindDaemon, Outcome: audit.Started, User: by, Reason: "The configuration is read again.",
		Detail: map[string]string{
			"event": "config_reload", "file": from.Path, "sha256": from.SHA256, "reloaded": strings.Join(change.Reloaded, " "), "at_start": strings.Join(change.AtStart, " "),
		},
	}); err != nil {
		return api.ConfigReload{}, err
	}
	d.settings.setConfig(taken)
	sandbox.SetHost(d.sandboxes, promisable(taken.Overcommit, d.opts.Log))
	if d.opts.Level != nil {
		telemetry.SetLevel(d.opts.Level, taken.Log.Level)
	}
	d.opts.Log.InfoContext(ctx, "the configuration was read again", "file", from.Path, "reloaded", change.Reloaded, "at_start", change.AtStart)
	return answer, nil
}
