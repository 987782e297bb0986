package main

import (
	"context"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/embedded"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon"
	"github.com/cofferdam-dev/cofferdam/internal/serve/doctor"
)

// doctorTimeout bounds the examination: it starts some programs.
const doctorTimeout = 2 * time.Minute

func newDoctor() *cobra.Command {
	var asJSON bool
	var flags proveFlags
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Say what this host can run, what is missing, and how to get it",
		GroupID: groupHost,
		Long: `Examines this host and changes nothing. "ok" is fine. "warn" is weaker than it could
be, or missing although a policy may ask for it. "fail" keeps sandboxes from running.
The exit code is 0 unless something failed.

With --prove it also makes a sandbox, and a program in its twin tries to get past each
control: to reach this host and others, to gain rights, to write where it may not, and
to use more than there is. A control is proved, FAILED, or not applicable, with what
came of the attempts. A failed one is exit code 1. It takes some seconds, and what the
daemon has on record of it are the runs of both sandboxes.`,
		Example: "  cofferdam doctor\n  cofferdam doctor --json\n  cofferdam doctor --prove --policy policy.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.checkFlags(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTimeout)
			defer cancel()
			report, err := examine(ctx)
			if err != nil {
				return err
			}
			if !flags.prove {
				return tellReport(report, asJSON)
			}
			proof, err := flags.proveControls(cmd.Context())
			if err != nil {
				_ = tellReport(report, asJSON) // it may say why
				return err
			}
			return tellProof(report, proof, asJSON)
		},
	}
	flags.registerFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// tellReport writes a report, which may say that nothing can run here.
func tellReport(report doctor.Report, asJSON bool) error {
	err := writeAnswer(report, asJSON, func(w io.Writer, r doctor.Report) error { return r.WriteText(w) })
	if err == nil && !report.Healthy() {
		err = &exitError{code: exitFailure}
	}
	return err
}

// examine looks at the installation that the daemon would have.
func examine(ctx context.Context) (doctor.Report, error) {
	paths, err := config.DefaultPaths()
	if err != nil {
		return doctor.Report{}, err
	}
	cfg, _, err := paths.Load()
	if err != nil {
		return doctor.Report{}, err
	}
	if err := daemon.CheckHostPrograms(paths, cfg); err != nil { // it would run them
		return doctor.Report{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return doctor.Report{}, err
	}
	writable := func() []hostpath.Tree { return written.OrAnywhere(paths.Written()) }
	runsc := daemon.FindRunsc(cfg.Runsc, self, writable())
	parent := keeper.Dial(paths.KeeperSocket())
	engines := all.Engines(all.Config{
		Runsc: runsc, Writable: writable, RunscDir: paths.Runsc(), StateDir: paths.State, RuncDir: paths.Runc(), Place: paths.Place(),
		Docker: cfg.Docker.Host, Grounds: paths.Grounds(), Probe: []string{self, "probe"},
		Kernel: cfg.GuestKernel, Monitor: cfg.MachineMonitor, Agent: embedded.Binary,
	}, parent)
	store := template.NewStore(paths.Templates(), template.Options{Writable: writable})
	return doctor.Examine(ctx, doctor.Inputs{
		State: paths.State, UID: os.Geteuid(), Env: os.Environ(), Runsc: runsc, Writable: writable, DefaultEngine: all.Default,
		Engines:   slices.SortedFunc(maps.Values(engines), func(a, b engine.Engine) int { return strings.Compare(a.Name(), b.Name()) }),
		Templates: store, DefaultTemplate: store.Meant(cfg.DefaultTemplate),
		GatewayUID: cfg.GatewayUID, Keeper: parent,
		AuditLog: paths.Audit(), Publishes: cfg.Audit.Publish.Wanted(),
		Advisories: advisory.Open(paths.Advisories(), advisory.Options{}),
		Upstreams: func(ctx context.Context) (discover.Found, error) {
			return daemon.Registries(ctx, cfg, paths, os.Environ())
		},
	}), nil
}
