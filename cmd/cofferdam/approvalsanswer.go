package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newApprove() *cobra.Command {
	flags := answerFlags{state: approval.Approved}
	cmd := &cobra.Command{
		Use:   "approve ID...",
		Short: "Let runs have these releases, hosts or calls, bound to what is shown",
		Long: `Approves requests, all of them or, if one can't be, none. On a terminal it shows
what is bound and who is let in, and asks first. A group's id means its pending requests,
a tree's id its releases that wait.

The approval is of what was shown, for those to whom it was shown. If the request has
changed since, in what it would let in, whom, or what is known of it, nothing is approved,
and the message says what is new. Where nothing is shown (without a terminal, or with
--yes) name the revision that you looked at, as ID@REVISION or with --revision.
"approvals list" and "approvals show" print it, and have it with --json as answer_id. That of a call of a tool is bound to its
arguments, and is for one call unless --scope says more.

--add-to-policy also writes allowlist entries into the policy file of the run (or
with =FILE into that one): comments and order stay, and the change is shown first.
A file that was changed since the run read it is left alone, unless --force.
--lockfile writes the releases, with the sha256 of their files, into a
requirements.txt (any name that ends in .txt; Python only). Other lockfiles are
written by their own tools: see cofferdam plan --lock.`,
		Example: `  cofferdam approvals approve ap-k3m7qx
  cofferdam approvals approve ap-k3m7qx@1 ap-w8d2fn@2 --scope policy --expires 30d --reason "read both"
  cofferdam approvals approve ap-k3m7qx@1 --add-to-policy --yes
  cofferdam approvals approve ap-k3m7qx --add-to-policy=policy.yaml --lockfile requirements.txt`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error { return flags.runAnswer(cmd, ids) },
	}
	flags.registerFlags(cmd)
	set := cmd.Flags()
	set.BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	set.StringVar(&flags.policy, "add-to-policy", "", "also write the releases into the run's policy file, or with =FILE into that one")
	set.Lookup("add-to-policy").NoOptDefVal = theRunsPolicy
	set.StringVar(&flags.lockfile, "lockfile", "", "also write the releases into this requirements.txt, with hashes")
	set.BoolVar(&flags.force, "force", false, "write the policy file though it was changed since the run read it")
	registerCompletion(cmd, "lockfile", completeFiles("txt"))
	return cmd
}

func newDeny() *cobra.Command {
	flags := answerFlags{state: approval.Denied}
	cmd := &cobra.Command{
		Use:   "deny ID...",
		Short: "Refuse these releases to runs",
		Long: `Denies requests, all of them or, if one can't be, none. A denial is about every
file of the release. The runs in its scope are refused, with the reason, until it
expires or is revoked. With ID@REVISION, or --revision, a request that has changed since
is not answered. Without, it is denied as it is by now: a denial lets nothing in.`,
		Example: "  cofferdam approvals deny ap-k3m7qx --reason \"use the standard library\"\n  cofferdam approvals deny apg-h4t9zc --scope everywhere",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, ids []string) error { return flags.runAnswer(cmd, ids) },
	}
	flags.registerFlags(cmd)
	return cmd
}

func (f *answerFlags) registerFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.scope, "scope", "", "for whom: run, policy or everywhere, and to approve a call of a tool, once; if not given, once for that and run for all else")
	set.StringVar(&f.expires, "expires", "", "for how long, such as 12h or 30d; for ever if not given")
	set.StringVar(&f.reason, "reason", "", "why; it is recorded, and of a denial the run is told")
	set.Uint64Var(&f.revision, "revision", 0, "the revision of the request that you looked at, as in ID@REVISION")
	set.BoolVar(&f.json, "json", false, "write the answered requests as JSON")
	cmd.ValidArgsFunction = completeRequests(approval.Pending)
	registerCompletion(cmd, "scope", completeWords(texts(approval.ScopeOnce, approval.ScopeRun, approval.ScopePolicy, approval.ScopeEverywhere)...))
	registerCompletion(cmd, "expires", completeWords("1h", "1d", "7d", "30d"))
	incomplete(cmd, "reason", "revision")
}

func (f *answerFlags) runAnswer(cmd *cobra.Command, ids []string) error {
	if err := f.checkFlags(cmd); err != nil {
		return err
	}
	if err := f.readRevisions(cmd, ids); err != nil {
		return err
	}
	// The person may take long to read: each call has its own limit.
	short, cancel := withQuickTimeout(cmd.Context())
	defer cancel()
	c, err := connectDaemon(short)
	if err != nil {
		return err
	}
	requests, err := addressed(c, short, ids)
	if err != nil {
		return allOrNone(ids, err)
	}
	edits, err := f.editsOfShown(cmd, requests)
	if err != nil {
		return err
	}
	if len(edits) == 0 { // else files let the next run have it
		if err := f.checkReachesSomebody(cmd, requests); err != nil {
			return err
		}
	}
	if f.current(requests) { // else the daemon refuses it, and says what is new
		if agreed, err := f.agreed(requests, edits); err != nil || !agreed {
			return err
		}
	}
	answered, err := f.sendAnswer(cmd.Context(), c, requests)
	if err != nil {
		return refusedWhole(ids, err)
	}
	failed := writeAnswered(edits)
	failed = errors.Join(f.printAnswered(answered, edits, failed == nil), failed)
	if ids := f.deniedToNobody(requests); len(ids) > 0 {
		fmt.Fprintf(os.Stderr, "cofferdam: the runs that asked for %s have ended, so the next run asks again; deny what it asks for with --scope policy, which is for every run under the same policy\n", ui.Printable(strings.Join(ids, ", ")))
	}
	return failed
}

// writeAnswered writes into files what an answer that has been given adds to them.
func writeAnswered(edits []fileEdit) error {
	var failed error
	for _, e := range edits {
		failed = errors.Join(failed, e.writeFile())
	}
	if failed != nil {
		return fmt.Errorf("the answer was given, but not written into a file: %w", failed)
	}
	return nil
}

// readRevisions notes the revisions that the ids name, and which name none.
func (f *answerFlags) readRevisions(cmd *cobra.Command, ids []string) error {
	f.named = map[string]uint64{}
	if f.revision > 0 && len(ids) != 1 {
		return usageError(cmd, "--revision is of one request; name several as ID@REVISION")
	}
	for _, text := range ids {
		id, revision, err := approval.ParseAnswerID(text)
		if err != nil {
			return err
		}
		if f.revision > 0 {
			if revision > 0 && revision != f.revision || approval.IsGroup(id) {
				return usageError(cmd, "--revision %d is of one request that names no other revision", f.revision)
			}
			revision = f.revision
		}
		if revision > 0 {
			f.named[id] = revision
		} else {
			f.bare = append(f.bare, id)
		}
	}
	return nil
}

// unshown refuses an approval of what is not shown here, unless each request has its revision: whoever wrote the
// command has looked at something, or nobody has. By then all ids are known to be of requests.
func (f *answerFlags) unshown(cmd *cobra.Command) error {
	if f.state == approval.Denied || !f.yes && ui.CanAsk() {
		return nil
	}
	if len(f.bare) == 0 {
		return nil
	}
	id := f.bare[0]
	if approval.IsGroup(id) {
		return usageError(cmd, "nothing is shown here (no terminal, or --yes), so name each request of %s at the revision that you looked at: cofferdam approvals list --group %s prints them as ID@REVISION", id, id)
	}
	return usageError(cmd, "nothing is shown here (no terminal, or --yes), so name the revision that you looked at, as %s@REVISION: cofferdam approvals show %s prints it", id, id)
}

// editsOfShown are the changes of files, once it is known that all requests were looked at.
func (f *answerFlags) editsOfShown(cmd *cobra.Command, requests []approval.Request) ([]fileEdit, error) {
	if err := f.unshown(cmd); err != nil {
		return nil, err
	}
	return f.listEdits(expanded(requests))
}

// allOrNone says of several requests of which one can't be answered that none was.
func allOrNone(ids []string, err error) error {
	if len(ids) < 2 {
		return err
	}
	return fmt.Errorf("%w; none of the %d was answered", err, len(ids))
}

// refusedWhole is allOrNone of an answer that was sent: a daemon that was lost or failed at it may have given it.
func refusedWhole(ids []string, err error) error {
	if status := client.StatusOf(err); status < 400 || status >= 500 {
		return err
	}
	return allOrNone(ids, err)
}

// current tells whether the requests are at the revisions that were named.
func (f *answerFlags) current(requests []approval.Request) bool {
	return !slices.ContainsFunc(requests, func(r approval.Request) bool {
		return f.named[r.ID] > 0 && f.named[r.ID] != r.Revision
	})
}

// checkReachesSomebody refuses to approve for runs that have ended, unless somebody says so: the
// next run has another name, and would ask again. The daemon knows which live, also those of calls,
// which have no sandbox.
func (f *answerFlags) checkReachesSomebody(cmd *cobra.Command, requests []approval.Request) error {
	if f.state != approval.Approved || cmd.Flags().Changed("scope") {
		return nil
	}
	for _, r := range expanded(requests) {
		if forNobody(r) {
			return usageError(cmd, "%s was asked for by the run %s, which has ended, and the next run would ask again: add --scope policy for runs under the same policy, or --scope run if you mean that run", r.ID, r.Asks[0].Run)
		}
	}
	return nil
}

func (f *answerFlags) checkFlags(cmd *cobra.Command) error {
	if !slices.Contains([]approval.Scope{"", approval.ScopeOnce, approval.ScopeRun, approval.ScopePolicy, approval.ScopeEverywhere}, approval.Scope(f.scope)) {
		return usageError(cmd, "unknown --scope %q; known scopes: once, run, policy, everywhere", f.scope)
	}
	if f.expires != "" {
		var err error
		if f.lasts, err = parseAge(f.expires); err != nil {
			return usageError(cmd, "--expires: %s", err)
		}
	}
	if f.force && f.policy == "" {
		return usageError(cmd, "--force is for --add-to-policy")
	}
	return nil
}

// scopeFor is the scope that an answer to a request has.
func (f *answerFlags) scopeFor(r approval.Request) approval.Scope {
	return cmp.Or(approval.Scope(f.scope), approval.ScopeFor(r.Kind, f.state))
}

// agreed shows what would be done and asks, at a terminal. Changes of files are
// shown always.
func (f *answerFlags) agreed(requests []approval.Request, edits []fileEdit) (bool, error) {
	for _, e := range edits {
		if _, err := fmt.Fprint(os.Stderr, ui.PrintableText(e.diff)); err != nil {
			return false, err
		}
	}
	if f.yes || f.state == approval.Denied {
		return true, nil
	}
	if !ui.CanAsk() {
		if len(edits) > 0 {
			return false, fault.Invalid("there is no terminal to ask whether to change the files; add --yes")
		}
		return true, nil
	}
	for _, r := range expanded(requests) {
		if _, err := fmt.Fprintln(os.Stderr, f.beforeAsking(r)); err != nil {
			return false, err
		}
	}
	if ui.Agrees(approvalQuestion(requests)) {
		return true, nil
	}
	_, _ = fmt.Fprintln(os.Stderr, "cofferdam: nothing was approved")
	return false, &exitError{code: exitFailure}
}

// sendAnswer binds to exactly what was read.
func (f *answerFlags) sendAnswer(ctx context.Context, c *client.Client, requests []approval.Request) ([]approval.Request, error) {
	ctx, cancel := withQuickTimeout(ctx)
	defer cancel()
	body := api.AnswerApprovals{
		State: string(f.state), Scope: f.scope, Reason: f.reason, ExpiresSeconds: int64(f.lasts / time.Second), Digests: map[string][]string{}, Revisions: map[string]uint64{},
	}
	for _, r := range requests {
		body.IDs = append(body.IDs, r.ID)
		if revision := f.named[r.ID]; revision > 0 {
			body.Revisions[r.ID] = revision
		} else if f.state == approval.Approved {
			body.Revisions[r.ID] = r.Revision
		}
		if f.state == approval.Approved && f.current([]approval.Request{r}) {
			noteShownDigests(body.Digests, r)
		}
	}
	texts, err := c.AnswerApprovals(ctx, body)
	if err != nil {
		return nil, err
	}
	answered := make([]approval.Request, 0, len(texts))
	for _, text := range texts {
		r, err := readRequest(text)
		if err != nil {
			return nil, err
		}
		answered = append(answered, r)
	}
	return answered, nil
}

// noteShownDigests notes the digests that were read of a request; of a tree those of its members
// that wait.
func noteShownDigests(digests map[string][]string, r approval.Request) {
	if !r.IsTree() {
		digests[r.ID] = approval.Bound(r)
		return
	}
	for _, m := range r.Members {
		if m.Request != nil && m.State == approval.Pending {
			digests[m.ID] = approval.Digests(m.Request.Files)
		}
	}
}

func (f *answerFlags) printAnswered(answered []approval.Request, edits []fileEdit, written bool) error {
	if written {
		for _, e := range edits {
			_, _ = fmt.Fprintf(os.Stderr, "cofferdam: changed %s\n", ui.Printable(e.path))
		}
	}
	if f.json {
		return ui.WriteJSON(os.Stdout, answered)
	}
	for _, l := range underTrees(answered) {
		r := l.Request
		if r.Answer == nil { // a tree of which a release waits on, or has ended
			r.Answer = &approval.Answer{Scope: f.scopeFor(r)}
		}
		until := ""
		if !r.Answer.Expires.IsZero() {
			until = ", until " + r.Answer.Expires.Local().Format(time.DateTime)
		}
		if _, err := fmt.Fprintf(os.Stdout, "%s%s %s: %s, scope %s%s, for %s\n", l.indent, r.State, ui.Printable(r.ID), ui.Printable(releaseText(r)),
			ui.Printable(string(r.Answer.Scope)), until, ui.Printable(describeScope(r, r.Answer.Scope))); err != nil {
			return err
		}
	}
	return nil
}

// deniedToNobody are the requests whose denial is for runs alone that have ended, so that the next run asks again. Unlike
// an approval, which checkReachesSomebody refuses, it takes them off the list. The answer stands, so nothing here can be
// denied once more before a run asks.
func (f *answerFlags) deniedToNobody(requests []approval.Request) (ids []string) {
	for _, r := range expanded(requests) {
		if f.state == approval.Denied && r.RunsEnded && f.scopeFor(r) == approval.ScopeRun {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func newRevoke() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke ID...",
		Short: "End answers now; later asks wait again",
		Long: `Ends an approval or a denial that holds. From then on it lets nothing in; what it let
in before stays where it is. The log records who did it.`,
		Example: "  cofferdam approvals revoke ap-k3m7qx --reason \"the maintainer's account was taken over\"",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return doEach(cmd.Context(), "revoking", ids, func(c *client.Client, ctx context.Context, id string) error {
				text, err := c.RevokeApproval(ctx, id, reason)
				if err != nil {
					return err
				}
				r, err := readRequest(text)
				if err == nil {
					_, err = fmt.Printf("revoked %s: %s\n", ui.Printable(r.ID), ui.Printable(releaseText(r)))
				}
				return err
			})
		},
		ValidArgsFunction: completeRequests(approval.Approved, approval.Denied),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is recorded")
	incomplete(cmd, "reason")
	return cmd
}
