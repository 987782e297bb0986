package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newApprovalsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID...",
		Short: "Show requests with all their evidence, and what approving would mean",
		Long: `Shows everything that is known about a request: who asked and why, what wanted it,
its files with their digests, the evidence, and the revision of the request that this
is: an answer names it, as ID@REVISION. A group's id means its pending requests. Publishers and agents wrote the text in it, so don't take it for true.
Characters that a terminal would take for instructions are shown as escapes.`,
		Example: "  cofferdam approvals show ap-k3m7qx\n  cofferdam approvals show apg-h4t9zc --json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			requests, err := askFor(cmd, addressed, ids)
			if err != nil {
				return err
			}
			return writeAnswer(requests, asJSON, showRequests)
		},
		ValidArgsFunction: completeRequests(),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func showRequests(w io.Writer, requests []approval.Request) error {
	for i, r := range requests {
		if i > 0 {
			_, _ = fmt.Fprintln(w) // the next write fails as well
		}
		if err := showRequest(w, r, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

func showRequest(w io.Writer, r approval.Request, now time.Time) error {
	s := &ui.Sheet{}
	s.Head(answerName(r), releaseText(r), string(r.State))
	showNear(s, r)
	if r.Kind == "" && !r.IsTree() {
		showRisks(s, r)
	}
	showStanding(s, r)
	showAskers(s, r, now)
	switch {
	case r.IsTree():
		showMembers(s, r, now)
	case r.Kind == approval.KindHost:
		showHost(s, r, now)
	case r.Kind == approval.KindCall:
		showCall(s, r, now)
	case r.Kind == approval.KindPush:
		showPush(s, r, now)
	default:
		showEvidence(s, r, now)
		showFiles(s, r)
	}
	if r.State == approval.Pending {
		showAnswers(s, r)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func showStanding(s *ui.Sheet, r approval.Request) {
	if a := r.Answer; a != nil {
		until := "for ever"
		if !a.Expires.IsZero() {
			until = "until " + a.Expires.Local().Format(time.DateTime)
		}
		s.Line("answer", "%s by %s at %s, scope %s, %s", a.State, a.By, a.At.Local().Format(time.DateTime), a.Scope, until)
		s.Text("reason", a.Reason)
		s.List("for runs", a.Runs)
		s.List("for policies", a.Policies)
	}
	if r.State == approval.Pending {
		s.Line("revision", "%d", r.Revision)
		for _, change := range r.Revisions {
			s.Line(fmt.Sprintf("  since %d", change.Revision), "%s", change.Change)
		}
	}
	s.Text("ended", r.Ended)
	s.Text("replaced by", r.ReplacedBy)
	if r.State == approval.Pending && !r.Expires.IsZero() {
		s.Line("waits until", "%s", r.Expires.Local().Format(time.DateTime))
	}
	s.Line("why it waits", "%s [%s]", r.Reason, r.Rule)
	s.Text("group", r.Group)
	if r.Tree != "" && r.Tree != r.ID {
		s.Line("part of", "%s", r.Tree)
	}
	s.List("note", r.Notes)
}

// showNear points out names that one is taken for the other.
func showNear(s *ui.Sheet, r approval.Request) {
	if len(r.Near) > 0 {
		s.Line("ATTENTION", "the same run asks for names that are almost the same: %s", strings.Join(r.Near, ", "))
	}
}

// showAnswers says what an approval would mean, and prints the commands that would be taken now.
func showAnswers(s *ui.Sheet, r approval.Request) {
	name, scope, flag := ui.Printable(answerName(r)), approval.ScopeFor(r.Kind, approval.Approved), ""
	if forNobody(r) {
		scope = approval.ScopePolicy
		flag = "--scope policy "
	}
	s.Raw("\n")
	if unbound := unboundOf(r); unbound != "" {
		s.Words(ui.Printable("It can't be approved yet: no digest of " + unbound + " is known that nobody can forge, so the approval would be bound to nothing. It is known once a client fetches it."))
		s.Raw("\n")
	} else {
		s.Words(ui.Printable(meaning(r, scope, 0)))
		if flag != "" {
			s.Words("The runs that asked have ended, so an approval for them alone would let nothing in.")
		}
		s.Raw("\n  cofferdam approvals approve " + flag + name + "\n")
	}
	s.Raw("  cofferdam approvals deny " + flag + name + " --reason \"...\"\n")
	if canDiffer(r) {
		s.Raw("  cofferdam approvals diff " + ui.Printable(r.ID) + "\n")
	}
}

// forNobody tells a request of which an approval for the runs that asked is refused, since they
// have ended.
func forNobody(r approval.Request) bool {
	return slices.ContainsFunc(expanded([]approval.Request{r}), func(one approval.Request) bool { return one.RunsEnded })
}

// unboundOf is a release that an approval of the request would include and that it could not be
// bound to; "" if there is none.
func unboundOf(r approval.Request) string {
	for _, one := range expanded([]approval.Request{r}) {
		if !one.Bindable() {
			return releaseText(one)
		}
	}
	return ""
}

func showAskers(s *ui.Sheet, r approval.Request, now time.Time) {
	for _, a := range r.Asks {
		by := ""
		if a.User != "" {
			by = " of " + a.User
		}
		s.Line("asked by", "run %s%s, %s ago", a.Run, by, ui.Age(now.Sub(a.At)))
		policy := a.PolicyName
		if policy == "" {
			policy = "the built-in policy"
		}
		s.Line("  under", "%s (%s)", policy, a.Policy)
		s.Text("  task", a.Task)
		s.List("  wanted by", a.WantedBy)
		if a.Because != "" {
			s.Line("  it says", "%q (the agent's claim)", a.Because)
		}
	}
	if more := r.Asked - len(r.Asks); more > 0 {
		s.Line("", "and %s", ui.Plural(more, "other run", "other runs"))
	}
}

// beforeAsking is what a person is shown of a request before the question whether to approve it:
// what decides, whole, and what speaks against it.
func (f *answerFlags) beforeAsking(r approval.Request) string {
	s := &ui.Sheet{}
	s.Head(answerName(r), releaseText(r))
	s.List("LOOK AT", notesOf(r))
	showWarnings(s, r)
	for _, a := range r.Asks {
		s.Line("asked by", "%s", a.Name())
	}
	switch r.Kind {
	case approval.KindHost:
	case approval.KindPush:
		s.Line("push", "%s", r.Host.Push)
		showRefs(s, r)
	case approval.KindCall:
		s.Line("tool of", "%s", ownerOfTool(r.Call))
		s.OrUnknown("definition", r.Call.Definition)
		showArguments(s, r)
	default:
		s.OrUnknown("index", r.Upstream)
		showFiles(s, r)
	}
	s.Words(ui.Printable(meaning(r, f.scopeFor(r), f.lasts)))
	return s.String()
}

// answerName is how an answer names a request as it was shown; one that takes no answer, by its
// id alone.
func answerName(r approval.Request) string {
	if r.State == approval.Pending && r.AnswerID != "" {
		return r.AnswerID
	}
	return r.ID
}

// meaning says what an approval would do, and what it would not.
func meaning(r approval.Request, scope approval.Scope, lasts time.Duration) string {
	switch {
	case r.IsTree():
		return treeMeaning(r, scope, lasts)
	case r.Kind == approval.KindHost:
		return hostMeaning(r, scope, lasts)
	case r.Kind == approval.KindCall:
		return callMeaning(r, scope, lasts)
	case r.Kind == approval.KindPush:
		return pushMeaning(r, scope, lasts)
	}
	who := describeScope(r, scope)
	long := describeExpiry(lasts)
	return fmt.Sprintf("Approving (scope %s) lets %s install exactly %s of %s, by digest, from this index%s. Another file, version, index or run asks again; "+
		"what it requires is not approved with it, and what the policy denies stays denied.",
		scope, who, ui.Noun(len(r.Files), "this file", fmt.Sprintf("these %d files", len(r.Files))), releaseText(r), long)
}
