package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all/stages"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon"
)

// roleCommands are the commands that are the other roles of this binary. All
// but serve are for the daemon to start, and hidden.
func roleCommands() []*cobra.Command {
	return []*cobra.Command{newServe(), newKeeperRole(), newGatewayRole(), newDialerRole(), newReaderRole(), newCgroupExecRole(), newEngineStageRole(), newEngineProbeRole()}
}

func newKeeperRole() *cobra.Command {
	return &cobra.Command{
		Use: "keeper", Short: "Be the parent of sandboxes (started by the daemon)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			paths, err := config.DefaultPaths()
			if err != nil {
				return err
			}
			usualModes()
			leaveNoCore()
			debug.SetMemoryLimit(keeper.MemoryGoal)
			log := logger()
			setDefault(log)
			signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			// The link, not the path, survives an upgrade in place.
			return keeper.NewServer(keeper.Config{
				Socket: paths.KeeperSocket(), Uplink: paths.Uplink(),
				CgroupExec: keeper.Joiner("/proc/self/exe", "cgroup-exec"), Logger: log, Release: version,
			}).Run(ctx)
		},
	}
}

func newGatewayRole() *cobra.Command {
	return &cobra.Command{
		Use: "gateway", Short: "Talk to the registries (started by the daemon)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The daemon ends the gateway by closing its door; a terminal's
			// Ctrl-C is not for it.
			signal.Ignore(syscall.SIGINT)
			leaveNoCore()
			log := logger()
			setDefault(log)
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			return daemon.RunGateway(ctx, os.Stdin, log)
		},
	}
}

func newDialerRole() *cobra.Command {
	return &cobra.Command{
		Use: "dialer", Short: "Make the gateway's connections (started by the daemon)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGINT) // as the gateway: it ends when that does
			leaveNoCore()
			setDefault(logger())
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			return daemon.RunDialer(ctx, os.Stdin)
		},
	}
}

func newReaderRole() *cobra.Command {
	return &cobra.Command{
		Use: "reader", Short: "Look into releases for a person (started by the daemon)", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(syscall.SIGINT)
			leaveNoCore()
			log := logger()
			setDefault(log)
			return daemon.RunReader(os.Stdin, log)
		},
	}
}

func newCgroupExecRole() *cobra.Command {
	return &cobra.Command{
		Use: "cgroup-exec", Short: "Enter control groups, then become a command (started by the keeper)",
		Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fault.Invalid("cgroup-exec is for the keeper")
			}
			return keeper.CgroupExec(args)
		},
	}
}

func newEngineStageRole() *cobra.Command {
	return &cobra.Command{
		Use: "stage", Short: "Lay out a sandbox's mounts, then become its engine's program (started by the keeper)",
		Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fault.Invalid("stage is for the keeper")
			}
			return stages.Stage(args[0], args[1], args[2:])
		},
	}
}

func newEngineProbeRole() *cobra.Command {
	return &cobra.Command{
		Use: "probe", Short: "Say what is seen inside (started by an engine in a container)",
		Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fault.Invalid("probe is for the engines")
			}
			return stages.Probe(args[0], cmd.OutOrStdout())
		},
	}
}

// usualModes has this process, and all that it starts, make files and folders with the modes
// that they are asked for, whatever the umask of who began it (of a unit or a cautious
// shell): the gateway's user and those of sandboxes pass through some of them. Secrets are asked for with a mode of their own.
func usualModes() { syscall.Umask(0o022) }

// leaveNoCore makes this process, and all that it starts, leave no image of its memory behind
// when it crashes: there may be secrets in it, and files of a host's are read by others.
func leaveNoCore() {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		logger().Warn("a crash may leave an image of this process's memory behind", "error", err)
	}
}

// logger writes to standard error, which the daemon's starter leads to a file.
func logger() *slog.Logger {
	return telemetry.NewLogger(maskedLog(os.Stderr), "", "")
}

// maskedLog is where a log goes, without the secrets that others put into names.
func maskedLog(to io.Writer) io.Writer {
	return telemetry.Masked(to, sync.OnceValue(func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }))
}
