package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/store"
)

// approvals serves the real queue, over a real log: what it holds at first is in
// asks.json of the state directory. It is opened with the first request.
func (d *stubDaemon) approvals() http.Handler {
	var queue http.Handler
	var failed error
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		if queue == nil && failed == nil {
			queue, failed = d.openQueue()
		}
		d.mu.Unlock()
		if failed != nil {
			refuse(w, http.StatusInternalServerError, failed.Error())
			return
		}
		queue.ServeHTTP(w, r)
	})
}

func (d *stubDaemon) openQueue() (http.Handler, error) {
	ctx := context.Background()
	log, err := audit.Open(filepath.Join(d.paths.State, "audit"), audit.Options{})
	if err != nil {
		return nil, err
	}
	kept, err := store.OpenApprovals(ctx, d.paths.Approvals())
	if err != nil {
		return nil, err
	}
	q, err := approval.Open(ctx, approval.Config{Store: kept, Log: log})
	if err != nil {
		return nil, err
	}
	var asks []approval.Ask
	text, err := os.ReadFile(filepath.Join(d.paths.State, "asks.json"))
	if err == nil {
		err = json.Unmarshal(text, &asks)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, a := range asks {
		if _, err := q.Ask(ctx, a); err != nil {
			return nil, err
		}
	}
	return httpapi.New(httpapi.Config{Approvals: q, Log: log, Logger: slog.New(slog.DiscardHandler)}), nil
}

// TestLockRelease: one release goes into a requirements.txt, and all else in it
// stays as it is.
func TestLockRelease(t *testing.T) {
	t.Parallel()
	rich := approval.Request{
		Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich", Version: "13.7.1"},
		Files: []approval.File{
			{Name: "rich-13.7.1-py3-none-any.whl", Digests: []string{"sha256:bb", "md5:00"}}, {Name: "rich-13.7.1.tar.gz", Digests: []string{"sha256:aa"}},
		},
	}
	const pin = "rich==13.7.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
	for name, c := range map[string]struct{ before, after string }{
		"empty":         {"", pin},
		"added":         {"# a comment\nattrs==1 --hash=sha256:cc", "# a comment\nattrs==1 --hash=sha256:cc\n" + pin},
		"other version": {"Rich==1.0 \\\n  --hash=sha256:cc \\\n  --hash=sha256:dd\nzope==1 --hash=sha256:ee\n", "Rich" + pin[4:] + "zope==1 --hash=sha256:ee\n"},
		"same version": {
			"rich[jupyter] == 13.7.1 ; python_version > \"3.8\" --hash sha256:cc # why\n",
			"rich[jupyter]==13.7.1 ; python_version > \"3.8\" \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n",
		},
		"a comment": {"rich==1 # why\nrich-cli==2\n", "# why\n" + pin + "rich-cli==2\n"},
		"windows":   {"x==1 --hash=sha256:cc\r\n", "x==1 --hash=sha256:cc\r\nrich==13.7.1 \\\r\n    --hash=sha256:aa \\\r\n    --hash=sha256:bb\r\n"},
	} {
		got, err := lockRelease([]byte(c.before), rich)
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, c.after)
		}
	}
}
