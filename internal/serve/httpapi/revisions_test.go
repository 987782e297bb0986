package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// held is something that a person is asked about, of each kind.
type held struct {
	kind string
	// ask files it for a run of an owner; more is what is known of it beside.
	ask func(q *approval.Queue, run, token, user string, more evidence.Evidence) (approval.Request, error)
	// project is under what its grants are found.
	project pkgref.Ref
}

func release(name string) approval.Ask {
	return approval.Ask{
		Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}, Upstream: "https://index.example/simple/",
		Files: []approval.File{{Name: name + "-1.0-py3-none-any.whl", Kind: "wheel", Digests: []string{"sha256:" + strings.Repeat("a", 64)}}},
	}
}

func helds() []held {
	one := func(kind string, what approval.Ask, project pkgref.Ref) held {
		return held{kind, func(q *approval.Queue, run, token, user string, more evidence.Evidence) (approval.Request, error) {
			return q.Ask(context.Background(), by(what, run, token, user, more))
		}, project}
	}
	host := approval.Host{Name: "api.example", Port: 443}
	push := approval.Host{Name: "git.example", Port: 443, Repository: "acme/app", Push: "sha256:" + strings.Repeat("c", 64)}
	arguments := `{"cents":7}`
	toolCall := approval.Call{Tool: "refund", Source: approval.SourceHost, Definition: approval.DigestOf("refund"), Digest: approval.DigestOf(arguments), Arguments: arguments}
	return []held{
		one("package", release("rich"), pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich"}),
		one("host", approval.Ask{Host: host}, host.Project()),
		one("push", approval.Ask{Host: push}, push.Project()),
		one("call", approval.Ask{Call: toolCall}, toolCall.Project()),
		{"tree", func(q *approval.Queue, run, token, user string, more evidence.Evidence) (approval.Request, error) {
			tree := approval.TreeAsk{Root: pkgref.Ref{Ecosystem: pkgref.Python, Name: "app", Version: "1.0"}}
			for i, name := range []string{"app", "lib", "rich"} {
				tree.Members = append(tree.Members, approval.TreeMember{Ask: by(release(name), run, token, user, more), Depth: i})
			}
			return q.AskTree(context.Background(), tree)
		}, pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich"}},
	}
}

func by(a approval.Ask, run, token, user string, more evidence.Evidence) approval.Ask {
	a.Run, a.Sandbox, a.Policy, a.Token, a.User, a.Evidence = run, "sb-"+run, "sha256:p-"+run, token, user, more
	a.Rule, a.Reason = "packages.default", "no list names it"
	return a
}

// answering is a way to answer a request as it was shown: the request as that way reads it,
// and the answer, which gives the status of a refusal and its sentence.
type answering struct {
	by     string
	answer func(t *testing.T, in reviewed, shown api.Approval, state string) (status int, sentence string)
}

func answerings() []answering {
	send := func(t *testing.T, in reviewed, a api.AnswerApprovals) (int, string) {
		t.Helper()
		_, err := in.client.AnswerApprovals(t.Context(), a)
		if err != nil {
			return client.StatusOf(err), err.Error()
		}
		return http.StatusOK, ""
	}
	return []answering{
		// As the command line sends it, with what was shown of the files beside.
		{"client", func(t *testing.T, in reviewed, shown api.Approval, state string) (int, string) {
			t.Helper()
			r := requestOf(t, shown)
			return send(t, in, api.AnswerApprovals{IDs: []string{r.ID}, State: state, Revisions: map[string]uint64{r.ID: r.Revision}})
		}},
		{"client, by the answer id", func(t *testing.T, in reviewed, shown api.Approval, state string) (int, string) {
			t.Helper()
			return send(t, in, api.AnswerApprovals{IDs: []string{requestOf(t, shown).AnswerID}, State: state})
		}},
		// As a script sends it, which copies what it read.
		{"/v1", func(t *testing.T, in reviewed, shown api.Approval, state string) (int, string) {
			t.Helper()
			var read struct {
				AnswerID string `json:"answer_id"`
			}
			if err := json.Unmarshal(shown, &read); err != nil {
				t.Fatal(err)
			}
			return in.post(t, "/v1/approvals/answer", fmt.Sprintf(`{"ids":[%q],"state":%q}`, read.AnswerID, state))
		}},
	}
}

func requestOf(t *testing.T, text api.Approval) approval.Request {
	t.Helper()
	var r approval.Request
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// post sends a body over the socket as it is.
func (in reviewed) post(t *testing.T, path, body string) (status int, text string) {
	t.Helper()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", in.socket)
	}
	h := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://daemon"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// ann is who asks first.
func ann() approval.Asker { return approval.Asker{Run: "r1", User: "ann"} }

// admits tells whether an answer that lets something in holds for somebody's run.
func (in reviewed) admits(t *testing.T, h held, who approval.Asker) bool {
	t.Helper()
	who.Policy = "sha256:p-" + who.Run
	grants, _, err := in.queue.Grants(t.Context(), h.project, who)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if !g.Denied {
			return true
		}
	}
	return false
}

// TestAnAnswerIsForWhatWasShown: kind of what is held, what happened after it was shown, and the
// way in which it is answered. A change of the request itself refuses the answer with a sentence;
// another owner's request is another one, and the answer lets nothing of it in.
func TestAnAnswerIsForWhatWasShown(t *testing.T) {
	t.Parallel()
	known := evidence.Evidence{Findings: []string{"one thing"}}
	meanwhile := map[string]struct {
		happens  func(q *approval.Queue, h held) error
		refused  string         // what the sentence says; "": it is no change
		outsider approval.Asker // whose run may not be let in
	}{
		"nothing": {happens: func(*approval.Queue, held) error { return nil }},
		"the same run asks again": {happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r1", "", "ann", known)
			return err
		}},
		"another token's run of the same id asks": {outsider: approval.Asker{Run: "r1", Token: "tok-b", User: "token b"}, happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r1", "tok-b", "token b", known)
			return err
		}},
		"another user's run of the same id asks": {outsider: approval.Asker{Run: "r1", User: "bob"}, happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r1", "", "bob", known)
			return err
		}},
		"another token asks": {outsider: approval.Asker{Run: "r2", Token: "tok-b", User: "token b"}, happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r2", "tok-b", "token b", known)
			return err
		}},
		"another user asks": {outsider: approval.Asker{Run: "r2", User: "bob"}, happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r2", "", "bob", known)
			return err
		}},
		"a token of the user's name asks": {outsider: approval.Asker{Run: "r2", Token: "ann", User: "ann"}, happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r2", "ann", "ann", known)
			return err
		}},
		"another run of the owner asks": {refused: "run r2 of ann asks for it, too", outsider: approval.Asker{Run: "r2", User: "ann"}, happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r2", "", "ann", known)
			return err
		}},
		"more is known": {refused: "its evidence says more: findings", happens: func(q *approval.Queue, h held) error {
			_, err := h.ask(q, "r1", "", "ann", evidence.Evidence{Findings: []string{"one thing", "another"}})
			return err
		}},
	}
	for _, h := range helds() {
		for what, m := range meanwhile {
			for _, way := range answerings() {
				for _, state := range []string{"approved", "denied"} {
					t.Run(strings.Join([]string{h.kind, what, way.by, state}, "/"), func(t *testing.T) {
						t.Parallel()
						in := review(t)
						asked, err := h.ask(in.queue, "r1", "", "ann", known)
						if err != nil {
							t.Fatal(err)
						}
						shown, err := in.client.Approval(t.Context(), asked.ID)
						if err != nil {
							t.Fatal(err)
						}
						if err := m.happens(in.queue, h); err != nil {
							t.Fatal(err)
						}
						status, sentence := way.answer(t, in, shown, state)
						if m.refused != "" {
							if status != http.StatusConflict || !strings.Contains(sentence, m.refused) || !strings.Contains(sentence, "look at it again (cofferdam approvals show "+asked.ID+")") {
								t.Errorf("%d: %s", status, sentence)
							}
							if in.admits(t, h, ann()) {
								t.Error("a refused answer let it in")
							}
						} else if status != http.StatusOK || in.admits(t, h, ann()) != (state == "approved") {
							t.Errorf("%d: %s", status, sentence)
						}
						if m.outsider.Run == "" {
							return
						}
						if in.admits(t, h, m.outsider) {
							t.Errorf("%s was let in by a look at another's request", m.outsider.Name())
						}
						if m.refused == "" {
							in.answersOwn(t, h, m.outsider, asked.ID)
						}
					})
				}
			}
		}
	}
}

// answersOwn is the control of another owner: its request waits apart, and its own answer lets it in.
func (in reviewed) answersOwn(t *testing.T, h held, who approval.Asker, first string) {
	t.Helper()
	page, err := in.client.Approvals(t.Context(), client.ApprovalFilter{Run: who.Run, States: []string{"pending"}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, text := range page.Approvals {
		r := requestOf(t, text)
		if slices.Equal(r.Owners(), []string{ann().Owner()}) {
			continue // of ann
		}
		if r.ID == first || len(r.Asks) != 1 || r.Asks[0].Run != who.Run || !slices.Equal(r.Owners(), []string{who.Owner()}) {
			t.Errorf("it is of %v: %+v", r.Owners(), r.Asks)
		}
		ids = append(ids, r.AnswerID)
	}
	if len(ids) == 0 {
		t.Fatal("another owner's request does not wait")
	}
	if _, err := in.client.AnswerApprovals(t.Context(), api.AnswerApprovals{IDs: ids, State: "approved"}); err != nil || !in.admits(t, h, who) {
		t.Errorf("its own answer lets it in: %v", err)
	}
}

// TestAGroupIsAnsweredAsItWasShown: what came into it since is not let in by its name.
func TestAGroupIsAnsweredAsItWasShown(t *testing.T) {
	t.Parallel()
	in := review(t)
	group := func() (id string, shown map[string]uint64) {
		t.Helper()
		page, err := in.client.Approvals(t.Context(), client.ApprovalFilter{States: []string{"pending"}})
		if err != nil {
			t.Fatal(err)
		}
		shown = map[string]uint64{}
		for _, text := range page.Approvals {
			r := requestOf(t, text)
			id, shown[r.ID] = r.Group, r.Revision
		}
		return id, shown
	}
	in.ask(t, "one", "r1")
	id, shown := group()
	late := in.ask(t, "late", "r1")
	answer := func(revisions map[string]uint64) error {
		_, err := in.client.AnswerApprovals(t.Context(), api.AnswerApprovals{IDs: []string{id}, State: "approved", Revisions: revisions})
		return err
	}
	for _, revisions := range []map[string]uint64{nil, shown} {
		if err := answer(revisions); client.StatusOf(err) != http.StatusBadRequest || revisions != nil && !strings.Contains(err.Error(), late) {
			t.Errorf("with %v: %v", revisions, err)
		}
	}
	if _, shown = group(); len(shown) != 2 {
		t.Fatal(shown)
	}
	if err := answer(shown); err != nil {
		t.Error(err)
	}
}

// TestEventsTellTheRevision, as requests do: whoever answers from one names it.
func TestEventsTellTheRevision(t *testing.T) {
	t.Parallel()
	for _, h := range helds() {
		t.Run(h.kind, func(t *testing.T) {
			t.Parallel()
			in := review(t)
			first, err := h.ask(in.queue, "r1", "", "ann", evidence.Evidence{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.ask(in.queue, "r2", "", "ann", evidence.Evidence{}); err != nil {
				t.Fatal(err)
			}
			now, err := in.queue.Get(t.Context(), first.ID)
			if err != nil || now.Revision <= first.Revision || now.AnswerID != approval.AnswerID(first.ID, now.Revision) {
				t.Fatalf("%d after %d, %q, %v", now.Revision, first.Revision, now.AnswerID, err)
			}
			page, err := in.client.Approvals(t.Context(), client.ApprovalFilter{})
			if err != nil || !slices.ContainsFunc(page.Approvals, func(text api.Approval) bool { return requestOf(t, text).AnswerID == now.AnswerID }) {
				t.Errorf("the list does not have %s: %v", now.AnswerID, err)
			}
			var since uint64
			for event, err := range in.client.WatchApprovals(t.Context(), &since) {
				if err != nil {
					t.Fatal(err)
				}
				if r := requestOf(t, event.Request); r.ID == first.ID {
					if r.AnswerID != now.AnswerID {
						t.Errorf("the event has %q, want %q", r.AnswerID, now.AnswerID)
					}
					break
				}
			}
		})
	}
}
