package enginetest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// testDamagedImage: refused before anything starts, and the sandbox stays
// frozen.
func testDamagedImage(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	dir := b.freeze()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 2 {
		t.Fatalf("the image holds %v (%v)", files, err)
	}
	for _, path := range files {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		damaged := bytes.Clone(whole)
		damaged[len(damaged)/2] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.freezer().Thaw(t.Context(), dir); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("thaw with a damaged %s: %v", filepath.Base(path), err)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if known, err := b.Keeper.Get(t.Context(), b.id); err != nil || !known.Frozen {
		t.Errorf("after refused thaws: %+v, %v", known, err)
	}
	b.thawFrom(dir)
	if got := b.runScript("echo whole"); got != "whole" {
		t.Errorf("after the thaw of the whole image: %q", got)
	}
}

// testFreezeUnread: what was sent to a guest that stands still can't be taken
// back, so it can't be frozen; it goes on as if nobody had tried.
func testFreezeUnread(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	conn := b.startCommand("lines", shellExec("lines", `while read -r line; do echo "got $line"; done`))
	defer conn.Close()
	if err := b.inst.Signal(t.Context(), int(unix.SIGSTOP)); err != nil {
		t.Fatal(err)
	}
	for b.answers() { // Stopping all of a process's threads takes a moment.
		if t.Context().Err() != nil {
			t.Fatal("a stopped sandbox goes on answering")
		}
	}
	b.typeLine(conn, "unread")
	dir := filepath.Join(t.TempDir(), "image")
	if err := b.freezer().Freeze(t.Context(), dir); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("freeze: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused freeze left an image: %v", err)
	}
	if err := b.inst.Signal(t.Context(), int(unix.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	b.readUntil(conn, "got unread")
	b.thawFrom(b.freeze())
}

// testDestroyFrozen: its commands end as those of any destroyed sandbox.
func testDestroyFrozen(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	conn := b.startCommand("long", shellExec("long", "echo on; sleep 1000"))
	defer conn.Close()
	b.readUntil(conn, "on\n") // it is not the guest's process any more, which has the sandbox's name
	dir := b.freeze()
	waited := make(chan engine.Exit, 1)
	go func() {
		exit, err := b.inst.Wait(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		waited <- exit
	}()
	if err := b.inst.Destroy(t.Context()); err != nil {
		t.Errorf("destroy: %v", err)
	}
	if exit := <-waited; exit.Reason != "destroyed" || exit.OOM {
		t.Errorf("wait: %+v", exit)
	}
	if r := b.collect(conn); r.exit.Code != 137 {
		t.Errorf("the command: %+v", r)
	}
	if err := b.freezer().Thaw(t.Context(), dir); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("thaw of a destroyed instance: %v", err)
	}
	s.nothingLeft(t, b.id)
}

// testFreezeEnding: of what has ended there is nothing to freeze; of what ends
// meanwhile there is an image or an end, never neither.
func testFreezeEnding(t *testing.T, s *Subject) {
	t.Helper()
	for i := range 3 {
		b := s.createBox(t, func(spec *engine.Spec) { spec.ID += "-" + strconv.Itoa(i) })
		frozen := make(chan error, 1)
		dir := filepath.Join(t.TempDir(), "image")
		go func() { frozen <- b.freezer().Freeze(t.Context(), dir) }()
		for range i { // A little later each time.
			b.answers()
		}
		killed := b.inst.Signal(t.Context(), int(unix.SIGKILL))
		err := <-frozen
		known, lost := b.Keeper.Get(t.Context(), b.id)
		if lost != nil {
			t.Fatal(lost)
		}
		if err == nil && known.Frozen && killed != nil { // the kill came too late
			b.thawFrom(dir)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), longestWait)
		if _, ended := b.inst.Wait(ctx); ended != nil {
			t.Errorf("the freeze failed (%v), the kill said %v, and the sandbox has not ended: %v", err, killed, ended)
		}
		cancel()
		if err == nil {
			continue // what was stopped in place has ended since
		}
		again := b.freezer().Freeze(t.Context(), dir)
		if !errors.Is(again, fault.ErrConflict) && !errors.Is(again, fault.ErrUnavailable) {
			t.Errorf("freeze of an ended instance: %v", again)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a freeze that failed left an image: %v", err)
		}
	}
}

// testFreezeTaken: an image is never written over another.
func testFreezeTaken(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	dir := t.TempDir()
	if err := b.freezer().Freeze(t.Context(), dir); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("freeze: %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("what was there is gone: %v", err)
	}
	if got := b.runScript("echo on"); got != "on" {
		t.Errorf("after the refusal: %q", got)
	}
}

// testFreezeAgain: a daemon that asks for what is done, or is being done by
// one that died, gets it.
func testFreezeAgain(t *testing.T, s *Subject) {
	t.Helper()
	b := s.createBox(t, nil)
	dir := b.freeze()
	if err := b.freezer().Freeze(t.Context(), dir); err != nil {
		t.Errorf("freeze of a frozen instance: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "seal.json")); err != nil { // as if it had not got so far
		t.Fatal(err)
	}
	if err := b.freezer().Thaw(t.Context(), dir); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("thaw of an image without a seal: %v", err)
	}
	inst, err := s.Reopen().Open(t.Context(), b.inst.Handle())
	if err != nil {
		t.Fatal(err)
	}
	b.inst = inst
	if err := b.freezer().Freeze(t.Context(), dir); err != nil {
		t.Errorf("completing a freeze: %v", err)
	}
	for range 2 { // The second finds it running.
		b.thawFrom(dir)
	}
	if got := b.runScript("echo on"); got != "on" {
		t.Errorf("after the thaw: %q", got)
	}
}
