package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Make, list and revoke tokens for clients over the network",
		GroupID: groupHost,
		Long: `A token lets a client use the daemon over the network: with the E2B SDKs, with /v1, or
with this program and --host. It has the policies that it may choose from, a quota for
all its sandboxes together, and sees only its own sandboxes. No token can answer
approvals.`,
		Example: "  cofferdam token create ci --policy data --expires 720h --sandboxes 20\n  cofferdam token list\n  cofferdam token revoke ci",
	}
	cmd.AddCommand(newTokenCreate(), newTokenList(), newTokenRevoke())
	return cmd
}

func newTokenCreate() *cobra.Command {
	var req api.MakeToken
	var expires time.Duration
	var memory, disk string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Make a token and write its secret, once",
		Long: `Makes a token and prints its secret. The daemon keeps only its digest: if you lose the
secret, make another token.

--admin is for your own programs that manage this installation: the token may do all
that you may, except answer approvals.`,
		Example: `  cofferdam token create ci --policy data > ci.token
  cofferdam token create lab --policy data --allow-policy strict --sandboxes 20 --memory 64GiB --cpu 16`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Name = args[0]
			if err := tokenBounds(cmd, &req, expires, memory, disk); err != nil {
				return err
			}
			made, err := askFor(cmd, (*client.Client).MakeToken, req)
			if err != nil {
				return err
			}
			return writeAnswer(made, asJSON, func(w io.Writer, made api.NewToken) error {
				_, err := fmt.Fprintln(w, ui.Printable(made.Secret))
				return err
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	set := cmd.Flags()
	set.StringVar(&req.Policy, "policy", "", "policy of its sandboxes, by name (default: the one named default)")
	set.StringArrayVar(&req.Policies, "allow-policy", nil, "another policy that it may choose; may be repeated")
	spanVar(set, &expires, "expires", "when it ends, such as 12h or 30d (default: never)")
	set.IntVar(&req.Quota.Sandboxes, "sandboxes", 0, "how many sandboxes at one time (default: no bound, as of all that follow)")
	set.Float64Var(&req.Quota.CPU, "cpu", 0, "cores of all its sandboxes together")
	set.StringVar(&memory, "memory", "", "memory of all together, such as 64GiB")
	set.StringVar(&disk, "disk", "", "disk of all together, such as 200GiB")
	set.IntVar(&req.Quota.CreatesPerMinute, "creates-per-minute", 0, "how many sandboxes it may make in a minute")
	set.BoolVar(&req.Admin, "admin", false, "it may do all but answer approvals")
	set.BoolVar(&asJSON, "json", false, "write JSON, with the secret")
	refuseRepeated(set, "policy")
	registerCompletion(cmd, "policy", completePolicies)
	registerCompletion(cmd, "allow-policy", completePolicies)
	incomplete(cmd, "expires", "sandboxes", "cpu", "memory", "disk", "creates-per-minute")
	return cmd
}

// bounding refuses a bound that is 0, or that is empty as a variable is that is not set: either would be as none.
func bounding(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		f := cmd.Flags().Lookup(name)
		if !f.Changed {
			continue
		}
		switch f.Value.String() {
		case "0", "-0":
			return usageError(cmd, "--%s is 0, which would bound nothing; give a number above 0, or leave it out for no bound", name)
		case "": // of a time it is 0, too
			return usageError(cmd, "--%s is empty or 0, which would bound nothing; give it a value, or leave it out for no bound", name)
		}
	}
	return nil
}

// tokenBounds reads how long a token holds, and what its sandboxes may take together.
func tokenBounds(cmd *cobra.Command, req *api.MakeToken, expires time.Duration, memory, disk string) (err error) {
	if err := bounding(cmd, "expires", "sandboxes", "cpu", "memory", "disk", "creates-per-minute"); err != nil {
		return err
	}
	if req.ExpiresSeconds, err = wholeSeconds(expires); err != nil {
		return err
	}
	if req.Quota.MemoryBytes, err = quotaSize("--memory", memory); err != nil {
		return err
	}
	req.Quota.DiskBytes, err = quotaSize("--disk", disk)
	return err
}

func wholeSeconds(d time.Duration) (int64, error) {
	if d < 0 || (d > 0 && d < time.Second) {
		return 0, fault.Invalid("--expires is %s; it must be a second or more, such as 30d", d)
	}
	return int64(d.Seconds()), nil
}

// quotaSize reads a size: a number of bytes, or one with a unit. "" is 0. The daemon refuses one that
// is less than any sandbox has.
func quotaSize(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	digits, unit := text, int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = strings.TrimSpace(rest), size
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > 1<<62/unit {
		return 0, fault.Invalid("%s %q is not a size such as 512MiB or 20GiB", flag, text)
	}
	return n * unit, nil
}

func newTokenList() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the tokens",
		Example: "  cofferdam token list\n  cofferdam token list --all --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tokens, err := askDaemon(cmd, (*client.Client).Tokens)
			if err != nil {
				return err
			}
			now, shown := time.Now(), []api.Token{}
			for _, t := range tokens {
				if all || isAlive(t, now) {
					shown = append(shown, t)
				}
			}
			return writeAnswer(shown, asJSON, func(w io.Writer, shown []api.Token) error { return writeTokens(w, shown, now) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	cmd.Flags().BoolVar(&all, "all", false, "those that are revoked or have expired, too")
	return cmd
}

func isAlive(t api.Token, now time.Time) bool {
	return t.Revoked.IsZero() && (t.Expires.IsZero() || now.Before(t.Expires))
}

func writeTokens(w io.Writer, tokens []api.Token, now time.Time) error {
	return tableOf([]string{"TOKEN", "NAME", "STATE", "EXPIRES", "POLICIES", "QUOTA"}, func(t api.Token) []string {
		state := "live"
		switch {
		case !t.Revoked.IsZero():
			state = "revoked"
		case !isAlive(t, now):
			state = "expired"
		case t.Admin:
			state = "live, admin"
		}
		return []string{t.ID, t.Name, state, ui.Moment(t.Expires), strings.Join(append([]string{t.Policy}, t.Policies...), ", "), quotaText(t.Quota)}
	})(w, tokens)
}

// quotaText is a quota in words; "" for none.
func quotaText(q api.Quota) string {
	var parts []string
	for _, part := range []struct {
		set  bool
		text string
	}{
		{q.Sandboxes > 0, ui.Plural(q.Sandboxes, "sandbox", "sandboxes")},
		{q.CPU > 0, cores(q.CPU)},
		{q.MemoryBytes > 0, ui.Size(q.MemoryBytes) + " memory"},
		{q.DiskBytes > 0, ui.Size(q.DiskBytes) + " disk"},
		{q.CreatesPerMinute > 0, ui.Plural(q.CreatesPerMinute, "create", "creates") + " a minute"},
	} {
		if part.set {
			parts = append(parts, part.text)
		}
	}
	return strings.Join(parts, ", ")
}

func cores(n float64) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%g cores", n)
}

func newTokenRevoke() *cobra.Command {
	return onEach(&cobra.Command{
		Use:     "revoke TOKEN...",
		Aliases: []string{"rm"},
		Short:   "End tokens for ever, by id or name",
		Long: `Revokes tokens. From then on no request with them is accepted, their sandboxes' files,
commands and ports answer nobody, and open streams and connections end. The sandboxes
go on to their own ends; "cofferdam list --json" says whose they are, and "cofferdam
kill" ends them.`,
		Example:           "  cofferdam token revoke ci",
		ValidArgsFunction: completeTokens,
	}, "revoking", dropResult((*client.Client).RevokeToken))
}

func completeTokens(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return offerEach((*client.Client).Tokens, func(t api.Token) string {
		if !t.Revoked.IsZero() {
			return ""
		}
		return t.Name + "\t" + t.ID
	})(cmd, args, word)
}
