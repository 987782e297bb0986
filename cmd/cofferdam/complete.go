package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/config"
	"github.com/cofferdam-dev/cofferdam/internal/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/template"
)

// Completion must be quick and must change nothing: it asks a daemon that
// runs, and never starts one.
const (
	completionPatience = time.Second
	completionRuns     = 30
)

// complete is cobra's signature of a completion.
type complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// names makes a completion of what ask returns.
func names(ask func(context.Context, *client.Client) []string) complete {
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
			c = client.New(paths.DaemonSocket())
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completionPatience)
		defer cancel()
		return ask(ctx, c), cobra.ShellCompDirectiveNoFileComp
	}
}

// fixed is a completion of words that are known.
func fixed(words ...string) complete {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

func completeTemplates(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return names(func(ctx context.Context, c *client.Client) []string {
		var found []string
		for _, known := range template.NewStore("", template.Options{}).Known() { // only asked for names
			found = append(found, known.Name)
		}
		templates, _ := c.Templates(ctx) // none, if none can be asked
		for _, t := range templates {
			found = append(found, t.Name)
		}
		slices.Sort(found)
		return slices.Compact(found)
	})(cmd, args, word)
}

func completeSandboxes(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return names(func(ctx context.Context, c *client.Client) []string {
		var found []string
		boxes, _ := c.Sandboxes(ctx) // none, if none can be asked
		for _, b := range boxes {
			found = append(found, b.ID+"\t"+printable(b.Run))
		}
		return found
	})(cmd, args, word)
}

// once completes the first argument only.
func once(f complete) complete {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, word)
	}
}

func completeSnapshots(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return names(func(ctx context.Context, c *client.Client) []string {
		var found []string
		snapshots, _ := c.Snapshots(ctx) // none, if none can be asked
		for _, s := range snapshots {
			if s.Name != "" {
				found = append(found, s.Name+"\t"+s.ID)
			}
			found = append(found, s.ID+"\t"+printable(s.Template+" "+s.Run))
		}
		slices.Sort(found)
		return slices.Compact(found)
	})(cmd, args, word)
}

func completePolicies(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return names(func(ctx context.Context, c *client.Client) []string {
		var found []string
		policies, _ := c.Policies(ctx) // none, if none can be asked
		for _, p := range policies {
			found = append(found, p.Name)
		}
		return found
	})(cmd, args, word)
}

func completeTokens(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return names(func(ctx context.Context, c *client.Client) []string {
		var found []string
		tokens, _ := c.Tokens(ctx) // none, if none can be asked
		for _, t := range tokens {
			if t.Revoked.IsZero() {
				found = append(found, t.Name+"\t"+t.ID)
			}
		}
		return found
	})(cmd, args, word)
}

// completeRuns offers the newest runs first.
func completeRuns(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	found, directive := names(func(ctx context.Context, c *client.Client) []string {
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

func completeRun(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	register(cmd, "policy", completePolicyFile)
	register(cmd, "lockfile", completeLockfile)
	register(cmd, "lock-mode", completeLockMode)
	register(cmd, "template", completeTemplates)
	register(cmd, "engine", completeEngines)
	register(cmd, "run-id", completeRuns)
	for _, flag := range []string{"task", "env", "workdir", "timeout", "publish"} {
		register(cmd, flag, cobra.NoFileCompletions)
	}
}

func completePolicyFile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeLockfile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"txt", "lock", "toml", "json", "yaml", "sum"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeLockMode(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return fixed(string(policy.LockFrozen), string(policy.LockPrefer))(cmd, args, word)
}

func completeAudit(cmd *cobra.Command) {
	register(cmd, "run", completeRuns)
	register(cmd, "sandbox", completeSandboxes)
	register(cmd, "kind", fixed(kinds()...))
	register(cmd, "outcome", fixed(outcomes()...))
	register(cmd, "from", cobra.NoFileCompletions)
}

// register can fail only for a flag that is not there or has one already, and
// then every test of this package fails.
func register(cmd *cobra.Command, flag string, f complete) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// completeEngines offers the engines of this version.
func completeEngines(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	engines := slices.Sorted(maps.Keys(all.Engines(all.Config{}, nil))) // only named, never used
	return fixed(engines...)(cmd, args, word)
}
