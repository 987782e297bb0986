package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestCommandsThatShowPrintsAreTaken: whoever enters a command that "approvals show" prints is not refused, whether the
// run goes on or has ended, for a release, a tree, a host, a push and a call. For a request that can't be
// approved yet there is none. Either way the request can be denied.
func TestCommandsThatShowPrintsAreTaken(t *testing.T) {
	t.Parallel()
	unbound := askShown("unbound", evidence.Evidence{})
	unbound.Files[0].Digests = []string{"sha1:aa"}
	host, call, push := askShown("x", evidence.Evidence{}), askShown("x", evidence.Evidence{}), askShown("x", evidence.Evidence{})
	for _, a := range []*approval.Ask{&host, &call, &push} {
		a.Package, a.Files, a.Upstream = pkgref.Ref{}, nil, ""
	}
	host.Host = approval.Host{Name: "api.example", Port: 443}
	push.Host = approval.Host{Name: "git.example", Port: 443, Repository: "acme/app", Push: "sha256:" + strings.Repeat("a", 64)}
	push.Evidence.Host = &evidence.Host{Refs: []string{"refs/heads/main a b"}}
	call.Call = approval.Call{Tool: "refund", Source: approval.SourceHost, Definition: "sha256:" + strings.Repeat("b", 64), Digest: approval.DigestOf("{}"), Arguments: "{}"}
	for name, ask := range map[string]approval.Ask{"a release": askShown("evil", evidence.Evidence{}), "without a digest": unbound, "a host": host, "a push": push, "a call": call, "a tree": {}} {
		for _, live := range []bool{true, false} {
			for _, verb := range []string{"approve", "deny"} {
				q := newShownQueue(t)
				q.FollowRuns(func() map[string]bool { return map[string]bool{"r1": live} })
				text := shownOf(t, q, name, ask)
				taken := takePrinted(t, q, verb, text)
				if want := name != "without a digest" || verb == "deny"; taken != want {
					t.Errorf("%s, live %v: a command to %s is printed: %v\n%s", name, live, verb, taken, text)
				}
			}
		}
	}
}

// TestWhatWasNotLookedAtIsNotAbsent: of a file that was looked into before lines of code were, nothing is said of
// lines; and where a request has more files than one, it is said that not all of them may have been looked into.
func TestWhatWasNotLookedAtIsNotAbsent(t *testing.T) {
	t.Parallel()
	show := func(read, files int) string {
		ask := askShown("foo", evidence.Evidence{Inside: &evidence.Inside{Files: 1, Read: read}})
		ask.Files[0].Kind = "sdist"
		for i := 1; i < files; i++ {
			ask.Files = append(ask.Files, approval.File{Name: fmt.Sprint("other-", i), Kind: "wheel", Digests: []string{"sha256:" + strings.Repeat("c", 64)}})
		}
		return shownOf(t, newShownQueue(t), "a release", ask)
	}
	const line, several = "no line that plainly sends, starts or hides something in 1 text looked at", "whether each of its 2 files was looked into"
	if text := show(1, 1); !strings.Contains(text, line) || strings.Contains(text, several) {
		t.Error(text)
	}
	if text := show(0, 1); strings.Contains(text, "no line") {
		t.Error(text)
	}
	if text := show(1, 2); !strings.Contains(text, several) {
		t.Error(text)
	}
}

// TestApprovalIsAskedForAllThatWasShown: a tree's releases are requests of their own, and one that is named beside its
// tree is asked about once.
func TestApprovalIsAskedForAllThatWasShown(t *testing.T) {
	t.Parallel()
	one, two := approval.Request{ID: "ap-1", State: approval.Pending}, approval.Request{ID: "ap-2", State: approval.Pending}
	tree := approval.Request{ID: "ap-3", State: approval.Pending, Members: []approval.Member{
		{ID: "ap-1", State: approval.Pending, Request: &one}, {ID: "ap-2", State: approval.Pending, Request: &two},
	}}
	for want, requests := range map[string][]approval.Request{
		"approve 1 request?":   {one},
		"approve 2 requests?":  {tree},
		"approve 2 requests? ": {tree, one},
	} {
		if got := approvalQuestion(requests); got != strings.TrimSpace(want) {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// shownOf asks, and gives what show prints of the request.
func shownOf(t *testing.T, q *approval.Queue, name string, ask approval.Ask) string {
	t.Helper()
	var r approval.Request
	var err error
	if name == "a tree" {
		one, two := askShown("app", evidence.Evidence{}), askShown("lib", evidence.Evidence{})
		r, err = q.AskTree(t.Context(), approval.TreeAsk{Root: one.Package, Members: []approval.TreeMember{{Ask: one}, {Ask: two, Depth: 1}}})
	} else {
		r, err = q.Ask(t.Context(), ask)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r, err = q.Get(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := showRequest(&b, r, time.Now()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// takePrinted enters each command to approve or deny that is printed, as a person does; false: there is none.
func takePrinted(t *testing.T, q *approval.Queue, verb, text string) (printed bool) {
	t.Helper()
	for line := range strings.Lines(text) {
		args, is := strings.CutPrefix(strings.TrimSpace(line), "cofferdam approvals "+verb+" ")
		if !is {
			continue
		}
		printed = true
		cmd := newApprove()
		if verb == "deny" {
			cmd = newDeny()
		}
		if err := cmd.ParseFlags(strings.Fields(strings.ReplaceAll(args, `"`, ""))); err != nil {
			t.Fatal(err)
		}
		f := &answerFlags{state: approval.Approved, scope: cmd.Flag("scope").Value.String()}
		if verb == "deny" {
			f.state = approval.Denied
		}
		id, _, err := approval.ParseAnswerID(cmd.Flags().Arg(0))
		if err != nil {
			t.Fatal(err)
		}
		r, err := q.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.checkReachesSomebody(cmd, []approval.Request{r}); err != nil {
			t.Errorf("%s: refused: %v", line, err)
		}
		if ids := f.deniedToNobody([]approval.Request{r}); len(ids) > 0 {
			t.Errorf("%s: the next run would ask again for %s", line, ids)
		}
		if _, err := q.Answer(t.Context(), "bob", approval.Verdict{IDs: cmd.Flags().Args(), State: f.state, Scope: approval.Scope(f.scope)}); err != nil {
			t.Errorf("%s: refused: %v", line, err)
		}
	}
	return printed
}

// TestOnlyWhatNobodyHasIsSaidToBeDeniedToNobody: of several, those alone whose runs have ended, also in a group.
func TestOnlyWhatNobodyHasIsSaidToBeDeniedToNobody(t *testing.T) {
	t.Parallel()
	ended, lives := approval.Request{ID: "ap-ended", RunsEnded: true}, approval.Request{ID: "ap-lives"}
	for _, c := range []struct {
		flags answerFlags
		want  string
	}{
		{answerFlags{state: approval.Denied}, "ap-ended"},
		{answerFlags{state: approval.Denied, scope: "policy"}, ""},
		{answerFlags{state: approval.Approved}, ""},
	} {
		if got := strings.Join(c.flags.deniedToNobody([]approval.Request{ended, lives}), " "); got != c.want {
			t.Errorf("%+v: %q", c.flags, got)
		}
	}
}
