package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon"
	"github.com/cofferdam-dev/cofferdam/internal/serve/doctor"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// serveFlags are those of `serve`.
type serveFlags struct {
	background bool
	check      bool
	json       bool
	listen     string
	tls        bool
	domain     string
	// acceptRollback goes on with a log that was rolled back.
	acceptRollback bool
}

func newServe() *cobra.Command {
	var flags serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon in the foreground",
		Long: `Runs the daemon: policy, admission, the log, and the API on its Unix socket. Other
commands start one by themselves if none runs; that one ends when it is idle, or when
this command takes its place. Ending a daemon does not end its sandboxes: the next one
takes them over.

With --listen, or "listen" in the configuration (docs/configuration.md says
where that is), it also serves clients with tokens over the network: the E2B SDKs, /v1,
and this program with --host. Beyond loopback addresses that needs TLS. --tls makes a
certificate with this installation's own CA; "cofferdam env" prints how clients trust
it.

--domain is all that the E2B SDKs need: NAME or NAME:PORT, below which they find the API
and the sandboxes' ports, over TLS. All names below it must lead to the daemon; at the
start it says whether they do on this machine, and what to do if not.

With --check it only says what is wrong with the configuration, the named policies, the
templates and this host. The exit code is 1 if the daemon could not serve, and 0
otherwise.`,
		Example: `  cofferdam serve
  cofferdam serve --listen 127.0.0.1:7433
  cofferdam serve --listen 0.0.0.0:7433 --tls
  cofferdam serve --domain sandbox.localhost:7433
  cofferdam serve --check`,
		GroupID: groupHost,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onThisHost(cmd.Context(), "serve"); err != nil {
				return err
			}
			for _, name := range []string{"listen", "domain"} { // of a variable that is not set
				if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
					return usageError(cmd, "--%s is empty; give it a value, or leave it out", name)
				}
			}
			if flags.check {
				return flags.examine(cmd.Context())
			}
			if flags.json {
				return usageError(cmd, "--json is for --check")
			}
			return flags.serveDaemon(cmd.Context())
		},
	}
	set := cmd.Flags()
	set.BoolVar(&flags.background, "background", false, "end when idle (how other commands start it)")
	set.StringVar(&flags.listen, "listen", "", "take clients with tokens at this address, such as 127.0.0.1:7433 (default: the configuration's, or nowhere)")
	set.BoolVar(&flags.tls, "tls", false, "with --listen: TLS, with a certificate of this installation's own")
	set.StringVar(&flags.domain, "domain", "", "names of the API and of sandboxes' ports below this one, over TLS: NAME or NAME:PORT (default: the configuration's, or none)")
	set.BoolVar(&flags.acceptRollback, "accept-rollback", false, "go on with an audit log that was rolled back or replaced, once, and put that on record")
	set.BoolVar(&flags.check, "check", false, "only say what would be wrong")
	set.BoolVar(&flags.json, "json", false, "with --check: write JSON")
	refuseRepeated(set, "domain")
	registerCompletion(cmd, "listen", completeWords("127.0.0.1:7433"))
	registerCompletion(cmd, "domain", completeWords("sandbox.localhost:7433"))
	return cmd
}

// config is the configuration with what the flags change of it.
func (f serveFlags) config(paths config.Paths) (config.Config, config.Source, error) {
	cfg, from, err := paths.Load()
	if err != nil {
		return cfg, from, err
	}
	if f.listen != "" {
		cfg.Listen.Address = f.listen
	}
	if f.tls {
		cfg.Listen.TLS = config.TLS{Auto: true}
	}
	if f.domain != "" {
		if cfg.Listen, err = cfg.Listen.Below(f.domain); err != nil {
			return cfg, from, err
		}
	}
	if err := cfg.Listen.Check(); err != nil {
		return cfg, from, fault.Invalid("listen%s", err)
	}
	return cfg, from, nil
}

func (f serveFlags) serveDaemon(ctx context.Context) error {
	paths, err := config.DefaultPaths()
	if err != nil {
		return err
	}
	cfg, from, err := f.config(paths)
	if err != nil {
		return err
	}
	usualModes()
	leaveNoCore()
	if !f.background {
		if err := f.mayServe(ctx, cfg, from, paths); err != nil {
			return err
		}
		if err := takeOver(ctx, paths); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	level := telemetry.NewLevel(cfg.Log.Level)
	log := telemetry.NewLeveledLogger(maskedLog(os.Stderr), level, cfg.Log.Format)
	setDefault(log)
	d, err := daemon.New(ctx, daemon.Options{
		Paths: paths, Config: cfg, From: from, Version: version, Executable: self,
		EndWhenIdle: f.background, AcceptRollback: f.acceptRollback, Log: log,
		Level: level, ReadConfig: func() (config.Config, config.Source, error) { return f.config(paths) },
	})
	if err != nil {
		return err
	}
	if !f.background && cfg.Listen.ClientDomain() != "" {
		safego.Go(func() { tellDomain(ctx, os.Stderr, resolveSystem, cfg.Listen) }) // a lookup may take its time; nobody waits for it
	}
	return d.Run(ctx)
}

// mayServe refuses, before the daemon that runs is asked to end, what the new one could
// not serve.
func (f serveFlags) mayServe(ctx context.Context, cfg config.Config, from config.Source, paths config.Paths) error {
	for _, found := range daemon.Examine(paths, cfg) {
		if !found.Passing {
			return from.Place(found.Err)
		}
	}
	if !f.acceptRollback {
		if err := intactLog(paths, cfg); err != nil {
			return err
		}
	}
	if c := checkListen(ctx, cfg.Listen, paths); c.Status == doctor.Fail {
		return fault.New(fault.ErrConflict, "%s", c.Sentence)
	}
	return nil
}

// takeOver ends the daemon that another command has left in the background, such as
// the one that built a template: its sandboxes are the next daemon's. One that works,
// or was started to stay, keeps its place.
func takeOver(ctx context.Context, paths config.Paths) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	c := client.Own(paths.DaemonSocket())
	running, err := c.Version(ctx)
	if errors.Is(err, client.ErrNoDaemon) {
		return nil
	}
	if err == nil {
		err = c.HandOver(ctx)
	}
	if err != nil {
		return fmt.Errorf("a daemon runs already (process %d): %w", running.PID, err)
	}
	return awaitLock(ctx, paths, func() bool { return false })
}
