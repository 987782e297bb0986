package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// createFlags are those of `create`; what a sandbox is made of are those of `run`.
type createFlags struct {
	runFlags

	named    string
	snapshot string
	labels   []string
	life     lifeFlags
	key      string
}

// lifeFlags say when a sandbox ends by itself.
type lifeFlags struct {
	ttl, idle time.Duration
	pause     bool
}

func (f *lifeFlags) register(cmd *cobra.Command) {
	set := cmd.Flags()
	set.DurationVar(&f.ttl, "ttl", 0, "end the sandbox after this time, such as 30m or 8h (default: never)")
	set.DurationVar(&f.idle, "idle", 0, "end it after this time without a command, a client or a file operation (default: never)")
	set.BoolVar(&f.pause, "then-pause", false, "pause it then, instead of removing it")
	for _, flag := range []string{"ttl", "idle"} {
		register(cmd, flag, cobra.NoFileCompletions)
	}
}

// lifetime is what the flags ask for. Less than a second is none.
func (f *lifeFlags) lifetime() (api.Lifetime, error) {
	for name, d := range map[string]time.Duration{"--ttl": f.ttl, "--idle": f.idle} {
		if d < 0 || (d > 0 && d < time.Second) {
			return api.Lifetime{}, fault.Invalid("%s is %s; it must be a second or more, such as 30m", name, d)
		}
	}
	l := api.Lifetime{TTLSeconds: int64(f.ttl.Seconds()), IdleSeconds: int64(f.idle.Seconds())}
	switch {
	case !f.pause:
	case f.ttl == 0 && f.idle == 0:
		return l, fault.Invalid("--then-pause says what is done at the end; say with --ttl or --idle when that is")
	default:
		l.AtEnd = "pause"
	}
	return l, nil
}

func newCreate() *cobra.Command {
	var flags createFlags
	cmd := &cobra.Command{
		Use:     "create [flags]",
		Short:   "Make a sandbox that stays",
		GroupID: groupWork,
		Long: `Makes a sandbox and prints its id as soon as commands can start in it. It stays until
its time is over (--ttl, --idle) or it is killed.

The policy is a document on this machine (--policy), or one that the daemon keeps
under a name (--named-policy, see "cofferdam policy list"). Over the network it must
be the latter, and one that the token may choose. Mounts show paths of the daemon's
host and are for its own users; "cofferdam cp" brings files in.

With --snapshot the sandbox goes on where the snapshot was made, with its template,
files and processes.`,
		Example: `  box=$(cofferdam create --policy policy.yaml --ttl 1h)
  cofferdam exec $box -- python3 -V
  cofferdam create --named-policy data --label team=ml --idle 10m --then-pause
  cofferdam create --snapshot warm --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return flags.create(ctx)
		},
	}
	flags.registerCreate(cmd)
	return cmd
}

func (f *createFlags) registerCreate(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVarP(&f.policy, "policy", "p", "", "policy document (default: a built-in one that allows no package, or the token's)")
	set.StringVar(&f.named, "named-policy", "", "policy that the daemon keeps under this name")
	set.StringArrayVarP(&f.locks, "lockfile", "l", nil, "hold installations to a lockfile; may be repeated")
	set.StringVar(&f.lockMode, "lock-mode", "", "frozen or prefer, as of run")
	set.StringVarP(&f.template, "template", "t", "", "root filesystem (see cofferdam template list)")
	set.StringVar(&f.engine, "engine", "", "what isolates the sandbox (default: what the policy asks for)")
	set.StringVar(&f.snapshot, "snapshot", "", "make it from a snapshot, by id or name")
	set.StringVar(&f.run, "run-id", "", "id of its run in the record (default: a new one)")
	set.StringVar(&f.task, "task", "", "what it is for, in words, for the record")
	set.StringArrayVar(&f.mounts, "mount", nil, "show a host path inside: SOURCE:DESTINATION[:rw], read-only without :rw")
	set.StringArrayVarP(&f.env, "env", "e", nil, "set a variable inside: NAME=VALUE, or NAME to take the host's value")
	set.StringVarP(&f.workdir, "workdir", "w", "", "directory inside in which commands start")
	set.StringArrayVar(&f.labels, "label", nil, "a label: KEY=VALUE; may be repeated")
	f.life.register(cmd)
	set.StringVar(&f.key, "once", "", "a key of your own: a second create with it gets the first one's sandbox")
	set.BoolVar(&f.json, "json", false, "write JSON")
	for flag, complete := range map[string]complete{
		"policy": completePolicyFile, "named-policy": completePolicies, "lockfile": completeLockfile, "lock-mode": completeLockMode,
		"template": completeTemplates, "engine": completeEngines, "snapshot": completeSnapshots, "run-id": completeRuns,
		"task": cobra.NoFileCompletions, "env": cobra.NoFileCompletions, "workdir": cobra.NoFileCompletions,
		"label": cobra.NoFileCompletions, "once": cobra.NoFileCompletions,
	} {
		register(cmd, flag, complete)
	}
}

func (f *createFlags) create(ctx context.Context) error {
	req, err := f.request()
	if err != nil {
		return err
	}
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	var box api.Sandbox
	err = patiently("making a sandbox", func() error {
		if f.key != "" {
			box, err = c.CreateOnce(ctx, f.key, req)
		} else {
			box, err = c.CreateSandbox(ctx, req)
		}
		return err
	})
	if err != nil {
		return givenUp(ctx, err)
	}
	return tellSandbox(c, box, f.json)
}

func (f *createFlags) request() (api.CreateSandbox, error) {
	if f.policy != "" && f.named != "" {
		return api.CreateSandbox{}, fault.Invalid("give --policy or --named-policy, not both")
	}
	cwd, err := os.Getwd()
	if err != nil {
		return api.CreateSandbox{}, fmt.Errorf("find the current directory: %w", err)
	}
	req, err := f.sandboxRequest(cwd)
	if err != nil {
		return req, err
	}
	req.Linger, req.Snapshot = true, f.snapshot
	if f.named != "" {
		req.Policy = api.Policy{Name: f.named}
	}
	if req.Labels, err = parseLabels(f.labels); err != nil {
		return req, err
	}
	req.Lifetime, err = f.life.lifetime()
	return req, err
}

func parseLabels(specs []string) (map[string]string, error) {
	if len(specs) == 0 {
		return nil, nil //nolint:nilnil // no labels is a good answer
	}
	labels := make(map[string]string, len(specs))
	for _, spec := range specs {
		name, value, found := strings.Cut(spec, "=")
		if !found || name == "" {
			return nil, fault.Invalid("--label %q must be KEY=VALUE", spec)
		}
		labels[name] = value
	}
	return labels, nil
}

// tellSandbox writes a sandbox that was made: its id, and on stderr what to know.
func tellSandbox(c *client.Client, box api.Sandbox, asJSON bool) error {
	if asJSON {
		return writeJSON(os.Stdout, box)
	}
	for _, note := range box.Notes {
		_, _ = fmt.Fprintf(os.Stderr, "cofferdam: note: %s\n", printable(note))
	}
	tellMissing(c, box.Missing, func(format string, args ...any) {
		_, _ = fmt.Fprintf(os.Stderr, "cofferdam: %s\n", printable(fmt.Sprintf(format, args...)))
	})
	_, err := fmt.Println(printable(box.ID))
	return err
}

// givenUp is the error of who pressed Ctrl-C, if that is what ended ctx.
func givenUp(ctx context.Context, err error) error {
	if ctx.Err() != nil && client.StatusOf(err) == 0 {
		return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: fmt.Errorf("given up: %w", ctx.Err())}
	}
	return err
}
