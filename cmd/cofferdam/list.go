package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newList() *cobra.Command {
	var filter client.SandboxFilter
	var labels []string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the sandboxes",
		GroupID: groupWork,
		Long: `Lists the sandboxes of this installation, the oldest first. A sandbox of "cofferdam
run" is there as long as its command runs. One that is "held" waits for approvals; one
that is "frozen" waits on disk and uses no memory. One that is "stuck" could not be
removed, and is tried again. OWNER is the token that made it. MEMORY is missing where
a sandbox did not say within two seconds. ENDS is when it ends by itself, which a run's
does when its client is gone.`,
		Example: "  cofferdam list\n  cofferdam list --state paused --label team=ml\n  cofferdam list --json",
		Args:    cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if filter.Labels, err = parseLabels(labels); err != nil {
			return err
		}
		boxes, err := askDaemon(cmd, func(c *client.Client, ctx context.Context) ([]listedSandbox, error) {
			return listWithUsage(ctx, c, filter, listedWithin)
		})
		if err != nil {
			return err
		}
		return writeAnswer(boxes, *asJSON, func(w io.Writer, boxes []listedSandbox) error { return writeSandboxes(w, boxes, time.Now()) })
	}
	set := cmd.Flags()
	set.StringArrayVar(&filter.States, "state", nil, "only those in this state; may be repeated")
	set.StringArrayVar(&filter.Runs, "run", nil, "only those of this run; may be repeated")
	set.StringArrayVar(&filter.Templates, "template", nil, "only those of this template; may be repeated")
	set.StringArrayVar(&filter.Snapshots, "snapshot", nil, "only those made from this snapshot, by id; may be repeated")
	set.StringArrayVar(&labels, "label", nil, "only those with this label, KEY=VALUE; with several, those that have all")
	registerCompletion(cmd, "state", completeWords("running", "frozen", "paused"))
	registerCompletion(cmd, "run", completeRuns)
	registerCompletion(cmd, "template", completeTemplates)
	registerCompletion(cmd, "snapshot", completeSnapshots)
	incomplete(cmd, "label")
	return cmd
}

// newPsAlias is `list` by the name that people try first.
func newPsAlias() *cobra.Command {
	cmd := newList()
	cmd.Use, cmd.Aliases = "ps", nil
	cmd.Short = `List the sandboxes, as "list" does`
	cmd.Example = "  cofferdam ps\n  cofferdam ps --state running\n  cofferdam ps --json"
	return cmd
}

// listedSandbox is a sandbox with what it uses, as `list --json` writes it.
type listedSandbox struct {
	api.Sandbox

	Usage *api.Usage `json:"usage,omitempty"` // nil: it has no processes now, or did not say in time
}

// listWithUsage finds sandboxes, with what they use as far as that is known within a time. Their guests are asked for a part of it,
// and a list neither fails nor waits for one that doesn't answer, or for a pace that is used up.
func listWithUsage(ctx context.Context, c *client.Client, filter client.SandboxFilter, within time.Duration) ([]listedSandbox, error) {
	boxes, err := c.FindSandboxes(ctx, filter)
	if err != nil {
		return nil, err
	}
	brief, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all, _ := usages(brief, c, boxes) // without its figure a sandbox is listed all the same
	return all, ctx.Err()
}

const (
	// mostUsages is how many sandboxes are asked at one time for what they use.
	mostUsages = 8
	// listedWithin is how long a list waits for what its sandboxes use.
	listedWithin = 2 * time.Second
	// tooFast is how long it takes until a daemon that was asked too fast takes more.
	tooFast = time.Second
)

// usages asks what sandboxes use, in their order; in all of them what was answered, whatever the error.
func usages(ctx context.Context, c *client.Client, boxes []api.Sandbox) ([]listedSandbox, error) {
	all := make([]listedSandbox, len(boxes))
	var asked errgroup.Group
	asked.SetLimit(mostUsages)
	for i, b := range boxes {
		all[i].Sandbox = b
		asked.Go(func() error { return all[i].askUsage(ctx, c) })
	}
	return all, asked.Wait()
}

// askUsage asks what the sandbox uses. One that is paused or has just ended uses nothing, which is no failure.
func (l *listedSandbox) askUsage(ctx context.Context, c *client.Client) error {
	for {
		usage, err := c.Usage(ctx, l.ID)
		if err == nil {
			l.Usage = &usage
			return nil
		}
		switch client.StatusOf(err) {
		case http.StatusNotFound, http.StatusConflict:
			return nil
		case http.StatusTooManyRequests:
		default:
			return err
		}
		select {
		case <-time.After(tooFast):
		case <-ctx.Done():
			return err
		}
	}
}

func writeSandboxes(w io.Writer, all []listedSandbox, now time.Time) error {
	return tableOf([]string{"SANDBOX", "RUN", "STATE", "TEMPLATE", "ENGINE", "OWNER", "POLICY", "MEMORY", "AGE", "ENDS", "WAITS FOR", "TASK"}, func(b listedSandbox) []string {
		memory := ""
		if b.Usage != nil {
			memory = ui.Size(b.Usage.MemoryBytes)
		}
		return []string{
			b.ID, b.Run, stateOf(b.Sandbox), b.Template, b.Engine, ownerOf(b.Sandbox), policyOf(b.Sandbox), memory,
			ui.Age(now.Sub(b.Created)), describeEnd(b.Sandbox, now), waitsFor(b.Holds), b.Task,
		}
	})(w, all)
}

// ownerOf is whose a sandbox is, in a word: the name of its token, or its id where it has none.
func ownerOf(b api.Sandbox) string { return cmp.Or(b.TokenName, b.Token, "the host") }

// policyOf is what a sandbox's policy is called, or the beginning of its digest.
func policyOf(b api.Sandbox) string {
	const most = len("sha256:") + 12
	return cmp.Or(b.PolicyName, b.Policy[:min(len(b.Policy), most)])
}

// stateOf is a sandbox's state; "held" is one that runs while something in it
// waits for a person, "stuck" one that could not be taken away.
func stateOf(b api.Sandbox) string {
	if b.Stuck != nil {
		return "stuck"
	}
	if b.State == "running" && len(b.Holds) > 0 {
		return "held"
	}
	return b.State
}

// describeEnd says when a sandbox ends by itself; "" if it does not, or its time stands
// still. One with a lease ends when its client is gone.
func describeEnd(b api.Sandbox, now time.Time) string {
	if b.Ends.IsZero() && b.Lifetime.LeaseSeconds > 0 {
		return "with its client"
	}
	if b.Ends.IsZero() || b.State == "paused" || b.State == "frozen" {
		return ""
	}
	what := "in "
	if strings.HasPrefix(b.Lifetime.AtEnd, "pause") {
		what = "pauses in "
	}
	return what + ui.Age(b.Ends.Sub(now))
}

// waitsFor names the requests that a sandbox waits for, the first three.
func waitsFor(holds []api.Hold) string {
	const most = 3
	var parts []string
	trees := map[string]bool{}
	for _, h := range holds {
		switch {
		case h.Tree == "":
			parts = append(parts, h.Request+" ("+h.Package+")")
		case !trees[h.Tree]:
			trees[h.Tree] = true
			parts = append(parts, h.Tree+" ("+h.Package+" and its install)")
		}
	}
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
