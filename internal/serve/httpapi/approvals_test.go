package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// reviewed is the API over a queue in memory.
type reviewed struct {
	queue  *approval.Queue
	log    *approvaltest.Log
	server *httpapi.Server
	client *client.Client
	socket string
}

func review(t *testing.T) reviewed {
	t.Helper()
	in := reviewed{log: &approvaltest.Log{}}
	var err error
	in.queue, err = approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: in.log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.queue.Close)
	in.server = httpapi.New(httpapi.Config{Approvals: in.queue, Log: in.log, Logger: slog.New(slog.DiscardHandler)})
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: in.server, ConnContext: httpapi.ConnContext}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	in.client, in.socket = client.New(socket), socket
	return in
}

func (in reviewed) ask(t *testing.T, name, run string) string {
	t.Helper()
	return in.askAs(t, name, run, "")
}

func (in reviewed) askAs(t *testing.T, name, run, user string) string {
	t.Helper()
	r, err := in.queue.Ask(t.Context(), approval.Ask{
		Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}, Run: run, User: user, Policy: "sha256:p",
		Files: []approval.File{{Name: name, Digests: []string{"sha256:" + name}}}, Rule: "packages.default", Reason: "no list names it",
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

func stateOf(t *testing.T, text api.Approval) string {
	t.Helper()
	var r approval.Request
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r.Package.Name + " " + string(r.State)
}

// TestALookIsOnRecord once, and listing is none.
func TestALookIsOnRecord(t *testing.T) {
	t.Parallel()
	in := review(t)
	id := in.ask(t, "one", "r1")
	seen := func() *approval.Seen {
		t.Helper()
		r, err := in.queue.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return r.Seen
	}
	if _, err := in.client.Approvals(t.Context(), client.ApprovalFilter{}); err != nil || seen() != nil {
		t.Error(seen(), err)
	}
	for range 2 {
		if _, err := in.client.Approval(t.Context(), id); err != nil || seen() == nil || seen().By == "" {
			t.Error(seen(), err)
		}
	}
	if n := len(in.log.All()); n != 2 {
		t.Errorf("%d records, want the ask and the look", n)
	}
}

// TestApprovals: pages, answers and revocations as a client sees them.
func TestApprovals(t *testing.T) {
	t.Parallel()
	in := review(t)
	one, two := in.ask(t, "one", "r1"), in.ask(t, "two", "r1")
	in.ask(t, "three", "r2")
	page, err := in.client.Approvals(t.Context(), client.ApprovalFilter{Limit: 2, States: []string{"pending"}})
	if err != nil || len(page.Approvals) != 2 || stateOf(t, page.Approvals[0]) != "three pending" || page.Next == "" {
		t.Fatal(page, err)
	}
	page, err = in.client.Approvals(t.Context(), client.ApprovalFilter{Limit: 2, Before: page.Next})
	if err != nil || len(page.Approvals) != 1 || stateOf(t, page.Approvals[0]) != "one pending" || page.Next != "" {
		t.Fatal(page, err)
	}
	page, err = in.client.Approvals(t.Context(), client.ApprovalFilter{Run: "r2", Ecosystem: "python", Package: "Three"})
	if err != nil || len(page.Approvals) != 1 {
		t.Error(page, err)
	}
	answered, err := in.client.AnswerApprovals(t.Context(), api.AnswerApprovals{
		IDs: []string{one + "@1", two}, Revisions: map[string]uint64{two: 1}, State: "approved", Scope: "policy", ExpiresSeconds: 60, Digests: map[string][]string{one: {"sha256:one"}},
	})
	if err != nil || len(answered) != 2 || stateOf(t, answered[1]) != "two approved" {
		t.Fatal(answered, err)
	}
	if text, err := in.client.RevokeApproval(t.Context(), one, "why"); err != nil || stateOf(t, text) != "one expired" {
		t.Error(err)
	}
	if text, err := in.client.Approval(t.Context(), two); err != nil || stateOf(t, text) != "two approved" {
		t.Error(err)
	}
	for _, r := range in.log.All()[3:] {
		if r.User == "" {
			t.Errorf("nobody did it: %+v", r)
		}
	}
}

// TestApprovalsRefused: each refusal has its status and its sentence.
func TestApprovalsRefused(t *testing.T) {
	t.Parallel()
	in := review(t)
	id := in.ask(t, "one", "r1")
	answer := func(a api.AnswerApprovals) error {
		_, err := in.client.AnswerApprovals(t.Context(), a)
		return err
	}
	_, unknown := in.client.Approval(t.Context(), "ap-nobody")
	_, pending := in.client.RevokeApproval(t.Context(), id, "")
	_, state := in.client.Approvals(t.Context(), client.ApprovalFilter{States: []string{"lost"}})
	_, before := in.client.Approvals(t.Context(), client.ApprovalFilter{Before: "x"})
	for what, c := range map[string]struct {
		err  error
		want int
	}{
		"unknown id":     {unknown, 404},
		"not answered":   {pending, 409},
		"unknown state":  {state, 400},
		"no number":      {before, 400},
		"answer unknown": {answer(api.AnswerApprovals{IDs: []string{"ap-nobody"}, State: "approved"}), 404},
		"other digests":  {answer(api.AnswerApprovals{IDs: []string{id + "@1"}, State: "approved", Digests: map[string][]string{id: {}}}), 409},
		"no revision":    {answer(api.AnswerApprovals{IDs: []string{id}, State: "approved"}), 400},
		"other revision": {answer(api.AnswerApprovals{IDs: []string{id + "@2"}, State: "approved"}), 409},
		"two revisions":  {answer(api.AnswerApprovals{IDs: []string{id + "@1"}, Revisions: map[string]uint64{id: 2}, State: "approved"}), 400},
		"revision zero":  {answer(api.AnswerApprovals{IDs: []string{id + "@0"}, State: "approved"}), 400},
		"of another":     {answer(api.AnswerApprovals{IDs: []string{id + "@1"}, Revisions: map[string]uint64{"ap-nobody": 1}, State: "approved"}), 400},
		"no answer":      {answer(api.AnswerApprovals{IDs: []string{id}, State: "maybe"}), 400},
		"long for ever":  {answer(api.AnswerApprovals{IDs: []string{id}, State: "approved", ExpiresSeconds: 1 << 62}), 400},
		"no id":          {answer(api.AnswerApprovals{State: "approved"}), 400},
	} {
		if got := client.StatusOf(c.err); got != c.want || !strings.Contains(c.err.Error(), " ") {
			t.Errorf("%s: %d, %v; want %d", what, got, c.err, c.want)
		}
	}
}

// TestNobodyAnswers: a caller that the kernel does not vouch for, such as one
// over TCP, can't answer and can't revoke.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	in := review(t)
	id := in.ask(t, "one", "r1")
	for _, path := range []string{"/v1/approvals/answer", "/v1/approvals/" + id + "/revoke"} {
		w := httptest.NewRecorder()
		in.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(`{"ids":["`+id+`"],"state":"approved"}`)))
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if r, err := in.queue.Get(t.Context(), id); err != nil || r.State != approval.Pending {
		t.Error(r.State, err)
	}
}

// TestWatchApprovals: events come as they happen, and from where a client stood.
func TestWatchApprovals(t *testing.T) {
	t.Parallel()
	in := review(t)
	in.ask(t, "one", "r1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	var since uint64
	for event, err := range in.client.WatchApprovals(ctx, &since) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event.Event+" "+stateOf(t, event.Request))
		if since = event.Number; len(got) == 1 {
			in.askAs(t, "two", "r1", "ann") // while it watches
			continue
		}
		break
	}
	in.askAs(t, "two", "r2", "ann")
	for event, err := range in.client.WatchApprovals(ctx, &since) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event.Event+" "+stateOf(t, event.Request))
		break
	}
	if diff := cmp.Diff([]string{"asked one pending", "asked two pending", "joined two pending"}, got); diff != "" {
		t.Error(diff)
	}
}
