package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
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

// liveRuns are the runs that have a sandbox.
func (d *stubDaemon) liveRuns() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	live := map[string]bool{}
	for _, box := range d.boxes {
		live[box.view.Run] = true
	}
	return live
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
	q.FollowRuns(d.liveRuns)
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
