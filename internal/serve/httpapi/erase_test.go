package httpapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// stuck is a store that can't be made anew the first time.
type stuck struct {
	*approvaltest.Memory

	failed bool
}

func (s *stuck) Reset(ctx context.Context) error {
	if !s.failed {
		s.failed = true
		return errors.New("the disk is full")
	}
	return s.Memory.Reset(ctx)
}

// TestErasingOnceMore: where the queue could not be made anew after the log was erased, asking
// once more, as the answer says, erases it there, though the log has nothing left to erase.
func TestErasingOnceMore(t *testing.T) {
	t.Parallel()
	log, err := audit.Open(t.TempDir(), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	queue, err := approval.Open(t.Context(), approval.Config{Store: &stuck{Memory: approvaltest.NewMemory()}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(queue.Close)
	asked, err := queue.Ask(t.Context(), approval.Ask{
		Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "one", Version: "1.0"}, Run: "r1", User: "ann", Task: "the task", Policy: "sha256:p",
		Files: []approval.File{{Name: "one", Digests: []string{"sha256:one"}}}, Rule: "packages.default", Reason: "no list names it",
	})
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ConnContext: httpapi.ConnContext, Handler: httpapi.New(httpapi.Config{Log: log, Approvals: queue, Logger: slog.New(slog.DiscardHandler)})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	known := func() string {
		t.Helper()
		r, err := queue.Get(t.Context(), asked.ID)
		if err != nil || len(r.Asks) != 1 {
			t.Fatal(r, err)
		}
		return r.Asks[0].User + r.Asks[0].Task
	}
	if _, err := client.New(socket).EraseAudit(t.Context(), api.EraseAudit{Run: "r1"}); err == nil || known() == "" {
		t.Fatalf("the test has not made the queue fail: %v", err)
	}
	if _, err := client.New(socket).EraseAudit(t.Context(), api.EraseAudit{Run: "r1"}); err == nil {
		t.Error("there was something left to erase in the log")
	}
	if text := known(); text != "" {
		t.Errorf("the queue still has %q", text)
	}
}
