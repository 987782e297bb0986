package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
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

func (f *lifeFlags) registerFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	spanVar(set, &f.ttl, "ttl", "end the sandbox after this time, such as 30m, 8h or 7d (default: never)")
	spanVar(set, &f.idle, "idle", "end it after this time without a command, a client or a file operation (default: never)")
	set.BoolVar(&f.pause, "then-pause", false, "pause it then, instead of removing it")
	incomplete(cmd, "ttl", "idle")
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
			return flags.createSandbox(cmd.Context())
		},
	}
	flags.registerCreate(cmd)
	return cmd
}

func (f *createFlags) registerCreate(cmd *cobra.Command) {
	f.registerSandbox(cmd)
	describeFlags(cmd, map[string]string{
		"policy": "policy document (default: a built-in one that allows no package, or the token's)", "lock-mode": "frozen or prefer, as with cofferdam run",
		"run-id": "id of its run in the record (default: a new one)", "task": "what it is for, in words, for the record",
		"workdir": "directory inside in which commands start",
	})
	set := cmd.Flags()
	set.StringVar(&f.named, "named-policy", "", "policy that the daemon keeps under this name")
	set.StringVar(&f.snapshot, "snapshot", "", "make it from a snapshot, by id or name")
	set.StringArrayVar(&f.labels, "label", nil, "a label: KEY=VALUE; may be repeated")
	f.life.registerFlags(cmd)
	set.StringVar(&f.key, "once", "", "a key of your own: a second create with it gets the first one's sandbox")
	set.BoolVar(&f.json, "json", false, "write JSON")
	registerCompletion(cmd, "named-policy", completePolicies)
	registerCompletion(cmd, "snapshot", completeSnapshots)
	incomplete(cmd, "label", "once")
}

func (f *createFlags) createSandbox(ctx context.Context) error {
	req, err := f.request() // may ask a person, whom Ctrl-C must get out of it
	if err != nil {
		return err
	}
	tellOutside(showing(req.Mounts), ui.NewStderr(os.Stderr).Say)
	ctx, stop := interruptible(ctx)
	defer stop()
	c, err := connectDaemon(ctx)
	if err != nil {
		return err
	}
	var box api.Sandbox
	err = ui.ShowWaiting("making a sandbox", func() error {
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
	cwd, err := currentDirectory()
	if err != nil {
		return api.CreateSandbox{}, err
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
		return ui.WriteJSON(os.Stdout, box)
	}
	stderr := ui.NewStderr(os.Stderr)
	for _, note := range box.Notes {
		stderr.Say("note: %s", note)
	}
	tellMissing(c, box.Missing, stderr.Say)
	_, err := fmt.Println(ui.Printable(box.ID))
	return err
}

// givenUp is the error of who pressed Ctrl-C, if that is what ended ctx.
func givenUp(ctx context.Context, err error) error {
	if ctx.Err() != nil && client.StatusOf(err) == 0 {
		return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: fmt.Errorf("given up: %w", ctx.Err())}
	}
	return err
}
