package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newApprovals() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "approvals",
		Aliases: []string{"approval"},
		Short:   "Answer what agents ask for and the policy leaves to a person",
		GroupID: groupReview,
		Long: `What a policy neither allows nor denies (packages.default: hold, network_unlisted:
hold, a rule with action: approve) waits here for a person. A request is one release,
one host on the network, or one call of a tool of the host, for the runs of one owner. An
answer is given on a revision of it, as it was shown. One about a release is bound to the digests of the files that were shown and to the
index that they came from; one about a host to its name and port; one about a call to
the tool and its arguments; each to a scope: one call, the runs that asked, their
policies, or everybody.`,
		Example: `  cofferdam approvals list
  cofferdam approvals show ap-k3m7qx
  cofferdam approvals approve ap-k3m7qx@1 ap-w8d2fn@2 --reason "read both"
  cofferdam approvals approve ap-k3m7qx --scope everywhere --expires 30d
  cofferdam approvals deny apg-h4t9zc --reason "use the standard library"
  cofferdam approvals watch`,
	}
	cmd.AddCommand(newApprovalsList(), newApprovalsShow(), newApprovalsDiff(), newApprove(), newDeny(), newRevoke(), newApprovalsWatch())
	return cmd
}

type approvalsListFlags struct {
	filter client.ApprovalFilter
	all    bool
	most   int
	json   bool
}

func newApprovalsList() *cobra.Command {
	var flags approvalsListFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List requests, what waits for an answer first of all",
		Long: `Lists the requests that wait for an answer, the newest first; with --state or --all
others too. REQUEST has the revision that a request is at, by which an answer names it
(with --json as answer_id). What one run asked for together is one group, whose id means
all its pending requests. NOTES says what to look at first.`,
		Example: "  cofferdam approvals list\n  cofferdam approvals list --all --package rich\n  cofferdam approvals list --state approved --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range flags.filter.States {
				if !slices.Contains(states(), s) {
					return fault.Invalid("--state %q is not one of %s", s, strings.Join(states(), ", "))
				}
			}
			if len(flags.filter.States) == 0 && !flags.all {
				flags.filter.States = []string{string(approval.Pending)}
			}
			return flags.listRequests(cmd.Context())
		},
	}
	set := cmd.Flags()
	set.StringSliceVar(&flags.filter.States, "state", nil, "only in this state; may be repeated")
	set.BoolVar(&flags.all, "all", false, "in every state")
	set.StringVar(&flags.filter.Run, "run", "", "only what this run asked for")
	set.StringVar(&flags.filter.Group, "group", "", "only of this group")
	set.StringVar(&flags.filter.Ecosystem, "ecosystem", "", "only of this ecosystem")
	set.StringVar(&flags.filter.Package, "package", "", "only of this package")
	set.IntVar(&flags.most, "limit", 1000, "so many at most")
	set.BoolVar(&flags.json, "json", false, "write JSON")
	registerCompletion(cmd, "state", completeWords(states()...))
	registerCompletion(cmd, "run", completeRuns)
	registerCompletion(cmd, "ecosystem", completeWords(ecosystemNames()...))
	incomplete(cmd, "group", "package", "limit")
	return cmd
}

func (f approvalsListFlags) listRequests(ctx context.Context) error {
	var requests []approval.Request
	var more bool
	err := withDaemon(ctx, quickTimeout, func(ctx context.Context, c *client.Client) (err error) {
		requests, more, err = allRequests(ctx, c, f.filter, f.most)
		if err == nil && len(requests) == 0 && f.filter.Run != "" {
			_, err = c.RunSummary(ctx, f.filter.Run) // a run that there is not asked for nothing, and waits for nothing
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.json {
		return ui.WriteJSON(os.Stdout, requests)
	}
	if err := writeRequests(os.Stdout, requests, time.Now()); err != nil {
		return err
	}
	switch {
	case more:
		_, err = fmt.Fprintf(os.Stderr, "cofferdam: there are more than %d; say more of what you look for, or use --limit\n", f.most)
	case len(requests) == 0 && slices.Equal(f.filter.States, []string{string(approval.Pending)}):
		_, err = fmt.Fprintln(os.Stderr, "cofferdam: nothing waits for an answer")
	}
	return err
}

func writeRequests(w io.Writer, requests []approval.Request, now time.Time) error {
	return tableOf([]string{"REQUEST", "GROUP", "STATE", "RELEASE", "ASKED BY", "AGE", "NOTES"}, func(l listed) []string {
		r := l.Request
		return []string{l.indent + answerName(r), r.Group, string(r.State), l.indent + releaseText(r), askedBy(r), ui.Age(now.Sub(r.Created)), strings.Join(notesOf(r), "; ")}
	})(w, underTrees(requests))
}
