package main

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// Completion must be quick and must change nothing: it asks a daemon that
// runs, and never starts one.
const (
	completionTimeout = time.Second
	completionRuns    = 30
)

// completeFound makes a completion of what find finds; of a word with an explanation, a tab is
// between them. It finds nothing where no daemon answers.
func completeFound(find func(context.Context, *client.Client) []string) completion {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := remoteOf(cmd).client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if c == nil {
			paths, err := config.DefaultPaths()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			c = client.Own(paths.DaemonSocket())
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completionTimeout)
		defer cancel()
		return find(ctx, c), cobra.ShellCompDirectiveNoFileComp
	}
}

// offerEach offers a word, or none, for each thing that a method of the client returns.
func offerEach[T any](method func(*client.Client, context.Context) ([]T, error), word func(T) string) completion {
	return completeFound(func(ctx context.Context, c *client.Client) []string {
		var found []string
		things, _ := method(c, ctx) // none, if none can be asked
		for _, t := range things {
			if w := word(t); w != "" {
				found = append(found, w)
			}
		}
		return found
	})
}

func completeSandboxes(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return offerEach((*client.Client).Sandboxes, func(b api.Sandbox) string { return b.ID + "\t" + ui.Printable(b.Run) })(cmd, args, word)
}

func completePolicies(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return offerEach((*client.Client).Policies, func(p api.NamedPolicy) string { return p.Name })(cmd, args, word)
}

func completeTemplates(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	found, directive := offerEach((*client.Client).Templates, func(t api.Template) string { return t.Name })(cmd, args, word)
	for _, known := range template.NewStore("", template.Options{}).Known() { // only asked for names
		found = append(found, known.Name)
	}
	slices.Sort(found)
	return slices.Compact(found), directive
}

func completeSnapshots(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return completeFound(func(ctx context.Context, c *client.Client) []string {
		var found []string
		snapshots, _ := c.Snapshots(ctx) // none, if none can be asked
		for _, s := range snapshots {
			if s.Name != "" {
				found = append(found, s.Name+"\t"+s.ID)
			}
			found = append(found, s.ID+"\t"+ui.Printable(s.Template+" "+s.Run))
		}
		slices.Sort(found)
		return slices.Compact(found)
	})(cmd, args, word)
}

// completeRuns offers the newest runs first.
func completeRuns(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	found, directive := completeFound(func(ctx context.Context, c *client.Client) []string {
		var runs []string
		filter := client.RecordFilter{Kinds: []string{string(audit.KindSandbox)}, Outcomes: []string{string(audit.Started)}}
		for line, err := range c.Records(ctx, filter) {
			var record audit.Record
			if err != nil || json.Unmarshal(line, &record) != nil {
				break
			}
			if !slices.Contains(runs, record.Run) && record.Run != "" {
				runs = append(runs, record.Run)
			}
		}
		slices.Reverse(runs)
		return runs[:min(len(runs), completionRuns)]
	})(cmd, args, word)
	return found, directive | cobra.ShellCompDirectiveKeepOrder
}

func completeDirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

func completePolicyFile(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return completeFiles("yaml", "yml")(cmd, args, word)
}

func ecosystemNames() []string { return texts(pkgref.Ecosystems()...) }

func lockModes() []string { return texts(policy.LockFrozen, policy.LockPrefer) }

func texts[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}
