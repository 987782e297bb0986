package sandbox_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
)

// TestOneTokensCreatesLeaveTurnsForOthers: while all that one token makes stands
// still, and more of it waits, another one's sandbox is made.
func TestOneTokensCreatesLeaveTurnsForOthers(t *testing.T) {
	d := newWorld(t).daemon(t)
	most := fairqueue.Fair(2*runtime.NumCPU(), 1)
	release := make(chan struct{})
	var stuck atomic.Int32
	d.engine.Before = func(spec engine.Spec) {
		if strings.HasPrefix(spec.Labels["run"], "slow") {
			stuck.Add(1)
			<-release
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range most.All + 8 {
		req := ask(t, sandbox.Request{Run: "slow", Owner: sandbox.Owner{Token: "tok-a"}})
		all.Go(func() { _, _ = d.Create(ctx, req) }) // that it comes to nothing is no matter
	}
	await(t, "one token's creates take its turns", func() bool { return int(stuck.Load()) == most.Each })
	d.create(t, sandbox.Request{Run: "quick", Owner: sandbox.Owner{Token: "tok-b"}})
	if n := int(stuck.Load()); n != most.Each {
		t.Errorf("%d creates of one token were under way at one time, want %d", n, most.Each)
	}
	cancel()
	close(release)
	all.Wait()
}

// TestNobodysTurnIsADecompression: sandboxes of compressed snapshots wait for these
// without the turns that others of the same owner need.
func TestNobodysTurnIsADecompression(t *testing.T) {
	s := newStudio(t)
	mine := sandbox.Owner{Token: "tok-a"}
	req := s.request(house)
	req.Owner = mine
	_, err := s.Snapshot(t.Context(), s.create(req).Info().ID, "base", "")
	must(t, err)
	store, err := snapshots.Open(snapshots.Config{Dir: filepath.Join(s.dir, "snapshots"), Room: s.room, ColdAfter: time.Nanosecond, Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	if !store.CompressOne(t.Context()) {
		t.Fatal("the snapshot was not compressed")
	}
	cold, err := filepath.Glob(filepath.Join(s.dir, "snapshots", "snap*", "*", "*.zst"))
	if err != nil || len(cold) == 0 {
		t.Fatal(cold, err)
	}
	pipe := filepath.Join(filepath.Dir(cold[0]), "a.zst") // whoever reads it waits
	must(t, unix.Mkfifo(pipe, 0o600))
	s.restart("sha256:template")

	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2*runtime.NumCPU() + 1 {
		all.Go(func() {
			if _, err := s.Create(ctx, sandbox.Request{Snapshot: "base", Owner: mine, User: "ann"}); err == nil {
				t.Error("a snapshot with a foreign file in it was used")
			}
		})
	}
	var w *os.File
	await(t, "the compressed snapshot is being read", func() bool {
		w, err = os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0)
		return err == nil
	})
	s.create(req)
	cancel()
	must(t, w.Close())
	all.Wait()
}
