package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func underGit(t *testing.T, onHold string) func(*Run) {
	t.Helper()
	return func(r *Run) {
		r.Policy = parse(t, "packages: { on_hold: "+onHold+" }\nname: "+r.Sandbox+"\nnetwork_allowlist:\n  - { host: git.example, git: { repos: [acme/*], push: hold } }\n  - { host: git.example, git: { repos: [open/*], push: allow } }\n")
	}
}

func object(letter string) string { return strings.Repeat(letter, 40) }

func pushTo(repository string, commands ...gitwire.Command) door.PushAsk {
	return door.PushAsk{Sandbox: "sb1", Name: "git.example", Port: 443, Path: "/" + repository + ".git/git-receive-pack", Change: gitwire.Change{Commands: commands, Objects: 7}, Size: 4_000, Wait: true}
}

func moving(to string) gitwire.Command {
	return gitwire.Command{Old: object("a"), New: object(to), Ref: "refs/heads/main"}
}

// TestAPushThatWaits: a person is told all that it changes, and what they approve is that
// push alone: another commit, ref, repository or run asks again.
func TestAPushThatWaits(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, underGit(t, "fail"))
	h.register(t, "sb2", "fail", underGit(t, "fail"))
	ctx := t.Context()
	ask := pushTo("acme/app", moving("b"), gitwire.Command{Old: object("c"), New: object("0"), Ref: "refs/heads/old"})
	look := ask
	look.Wait = false
	if a, err := h.AwaitPush(ctx, look); err != nil || a.Decision.Effect != policy.Hold || len(h.pending(t)) != 0 {
		t.Errorf("a look at it: %+v, %v, %v", a, err, h.pending(t))
	}
	for range 2 {
		if a, err := h.AwaitPush(ctx, ask); err != nil || a.Decision.Effect != policy.Hold || a.Approval == "" {
			t.Errorf("%+v %v", a, err)
		}
	}
	requests := h.pending(t)
	if len(requests) != 1 || requests[0].Kind != approval.KindPush || requests[0].What() != "push to git.example:443/acme/app "+ask.Change.Digest() {
		t.Fatalf("%+v", requests)
	}
	e := requests[0].Evidence.Host
	if strings.Join(e.Refs, "; ") != "refs/heads/main: "+object("a")+" -> "+object("b")+"; refs/heads/old: deleted, was "+object("c") || e.Objects != 7 || e.Bytes != 4_000 ||
		strings.Join(requests[0].Evidence.Findings, "") != "it deletes refs/heads/old" {
		t.Errorf("a person is shown %+v, %v", e, requests[0].Evidence.Findings)
	}
	if text := h.why(t); !strings.Contains(text, "the push to acme/app waits for approval") {
		t.Errorf("why: %s", text)
	}
	h.answer(t, approval.Approved, approval.ScopeRun, requests[0].ID)
	if a, err := h.AwaitPush(ctx, look); err != nil || !a.Decision.Allowed() || a.Approval != requests[0].ID {
		t.Errorf("once it is approved: %+v %v", a, err)
	}
	other := ask
	other.Sandbox = "sb2"
	other.Wait = false
	for name, ask := range map[string]door.PushAsk{
		"another commit": pushTo("acme/app", moving("d"), ask.Change.Commands[1]), "one ref alone": pushTo("acme/app", moving("b")), "another repository": pushTo("acme/other", ask.Change.Commands...),
		"another run": other,
	} {
		ask.Wait = false
		if a, err := h.AwaitPush(ctx, ask); err != nil || a.Decision.Effect != policy.Hold {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
	var used []audit.Record
	for _, r := range h.log.All() {
		if r.Outcome == audit.Used {
			used = append(used, r)
		}
	}
	if len(used) != 1 || used[0].Approval != requests[0].ID || !strings.Contains(used[0].Detail["refs"], object("b")) || used[0].Detail["push"] != ask.Change.Digest() {
		t.Errorf("on record are %+v", used)
	}
	if text := h.why(t); text != "" {
		t.Errorf("why says of an approved one: %s", text)
	}
}

// TestAPushThatIsDenied is refused from then on, with the person's words.
func TestAPushThatIsDenied(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, underGit(t, "fail"))
	ask := pushTo("acme/app", moving("b"))
	if _, err := h.AwaitPush(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	h.answer(t, approval.Denied, approval.ScopeRun, h.pending(t)[0].ID)
	if a, err := h.AwaitPush(t.Context(), ask); err != nil || a.Decision.Effect != policy.Deny || !strings.Contains(a.Decision.Reason, "the push to acme/app was denied by bob") || a.RequestID == "" {
		t.Errorf("%+v %v", a, err)
	}
	for repository, allowed := range map[string]bool{"open/app": true, "other/app": false} {
		if a, err := h.AwaitPush(t.Context(), pushTo(repository, moving("b"))); err != nil || a.Decision.Allowed() != allowed || a.Decision.Effect == policy.Hold {
			t.Errorf("%s: %+v %v", repository, a, err)
		}
	}
	var many []gitwire.Command
	for i := range gitwire.MaxCommands + 1 {
		many = append(many, gitwire.Command{Old: object("a"), New: object("b"), Ref: fmt.Sprintf("refs/heads/%d", i)})
	}
	for name, ask := range map[string]door.PushAsk{"nothing": pushTo("acme/app"), "too much": pushTo("acme/app", many...), "no push": {Sandbox: "sb1", Name: "git.example", Port: 443, Path: "/acme/app/git-upload-pack", Change: ask.Change}} {
		if a, err := h.AwaitPush(t.Context(), ask); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v %v", name, a, err)
		}
	}
}

// TestAPushToAHostThatIsClosed is refused, whatever was said about the push before.
func TestAPushToAHostThatIsClosed(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, underGit(t, "fail"))
	ask := pushTo("acme/app", moving("b"))
	if _, err := h.AwaitPush(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	h.answer(t, approval.Approved, approval.ScopeRun, h.pending(t)[0].ID)
	if a, err := h.AwaitPush(t.Context(), ask); err != nil || !a.Decision.Allowed() {
		t.Fatalf("%+v %v", a, err) // the control
	}
	must(t, h.Narrow(t.Context(), "sb1", policy.Narrowing{Deny: []string{policy.Everything}})) // by its client
	if a, err := h.AwaitPush(t.Context(), ask); err != nil || a.Decision.Effect != policy.Deny || a.Decision.Rule != ruleNarrowing || a.RequestID == "" {
		t.Errorf("%+v %v", a, err)
	}
	must(t, h.Narrow(t.Context(), "sb1", policy.Narrowing{}))
	if a, err := h.AwaitPush(t.Context(), ask); err != nil || !a.Decision.Allowed() {
		t.Errorf("open again: %+v %v", a, err)
	}
	must(t, h.NarrowPolicy(t.Context(), "sb1", parse(t, "network_allowlist: [ other.example ]\n")))
	if a, err := h.AwaitPush(t.Context(), ask); err != nil || a.Decision.Effect != policy.Deny || a.RequestID == "" {
		t.Errorf("%+v %v", a, err)
	}
}

// TestAPushCanNotLookLikeAnother: letters that turn the text around, that are not seen, or
// that look like others, are shown as their numbers.
func TestAPushCanNotLookLikeAnother(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, underGit(t, "fail"))
	ask := pushTo("acme/app", gitwire.Command{Old: object("a"), New: object("b"), Ref: "refs/heads/m\u0430in"},
		gitwire.Command{Old: object("a"), New: object("0"), Ref: "refs/heads/\u05d0\"\u3164"}, moving("c"))
	ask.Change.Options = []string{"ci.\u202eskip", `a\b`}
	if _, err := h.AwaitPush(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	seen := h.pending(t)[0].Evidence
	want := []string{`refs/heads/m\u0430in: ` + object("a") + ` -> ` + object("b"), `refs/heads/\u05d0"\u3164: deleted, was ` + object("a"), "refs/heads/main: " + object("a") + " -> " + object("c")}
	if !slices.Equal(seen.Host.Refs, want) {
		t.Errorf("%q", seen.Host.Refs)
	}
	if !slices.Equal(seen.Host.Options, []string{`ci.\u202eskip`, `a\\b`}) {
		t.Errorf("%q", seen.Host.Options)
	}
	beyond := " has letters beyond ASCII, which are shown as their numbers"
	if want := []string{`it deletes refs/heads/\u05d0"\u3164`, `refs/heads/m\u0430in` + beyond, `refs/heads/\u05d0"\u3164` + beyond}; !slices.Equal(seen.Findings, want) {
		t.Errorf("%q", seen.Findings)
	}
	if got := h.log.All(); !slices.ContainsFunc(got, func(r audit.Record) bool { return strings.Contains(r.Detail["refs"], `refs/heads/m\u0430in: `) }) {
		t.Error("on record the letters are another")
	}
	hidden := pushTo("acme/\u202eapp", moving("d"))
	if a, err := h.AwaitPush(t.Context(), hidden); !errors.Is(err, fault.ErrInvalid) || len(h.pending(t)) != 1 {
		t.Errorf("a repository that hides: %+v %v", a, err)
	}
}

// TestWhatAPersonIsToldOfAPush, beside its refs: what can't be undone, and what is unusual.
func TestWhatAPersonIsToldOfAPush(t *testing.T) {
	h := newAskingHouse(t, "fail", Limits{}, underGit(t, "fail"))
	ask := pushTo("acme/app",
		gitwire.Command{Old: object("a"), New: object("0"), Ref: "refs/heads/old"}, gitwire.Command{Old: object("a"), New: object("b"), Ref: "refs/tags/v1"},
		gitwire.Command{Old: object("0"), New: object("b"), Ref: "refs/tags/v2"}, gitwire.Command{Old: object("0"), New: object("b"), Ref: "refs/notes/x"}, moving("b"))
	if _, err := h.AwaitPush(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	want := []string{"it deletes refs/heads/old", "it moves the tag refs/tags/v1, which is there already", "refs/notes/x is neither a branch nor a tag"}
	if got := h.pending(t)[0].Evidence.Findings; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestAPushWhoseSandboxEnds while it waits gets no answer, whatever a person says then.
func TestAPushWhoseSandboxEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAskingHouse(t, "freeze", Limits{}, underGit(t, "freeze"))
		failed := make(chan error, 1)
		go func() {
			a, err := h.AwaitPush(context.Background(), pushTo("acme/app", moving("b")))
			if err == nil {
				t.Errorf("%+v", a)
			}
			failed <- err
		}()
		synctest.Wait()
		request := h.pending(t)[0]
		h.Unregister("sb1")
		h.answer(t, approval.Approved, approval.ScopeEverywhere, request.ID)
		if err := <-failed; err == nil {
			t.Error("a push of what has ended was let through")
		}
		h.queue.Close()
	})
}

// TestAPushThatIsKeptWaiting: its sandbox is to be frozen meanwhile, and it goes on with
// the answer.
func TestAPushThatIsKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newAskingHouse(t, "freeze", Limits{}, underGit(t, "freeze"))
		got := make(chan door.Answer, 1)
		go func() {
			a, err := h.AwaitPush(context.Background(), pushTo("acme/app", moving("b")))
			if err != nil {
				t.Error(err)
			}
			got <- a
		}()
		synctest.Wait()
		requests := h.pending(t)
		if len(requests) != 1 || len(got) != 0 {
			t.Fatalf("%+v, %d answers", requests, len(got))
		}
		h.answer(t, approval.Approved, approval.ScopeRun, requests[0].ID)
		if a := <-got; !a.Decision.Allowed() {
			t.Errorf("%+v", a)
		}
		h.queue.Close()
	})
}
