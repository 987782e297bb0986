//go:build long

package store_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// writerDir tells a test program that it is the one that writes, and where.
const writerDir = "COFFERDAM_FAULTY_WRITER"

// changes is how many entries the writer makes in each of its files.
const changes = 3

// TestWriter is no test: it is what TestFaultsOfTheDisk runs under strace. It says
// what was acknowledged, and what was refused.
func TestWriter(t *testing.T) {
	dir := os.Getenv(writerDir)
	if dir == "" {
		return // TestFaultsOfTheDisk gives it one
	}
	said := func(what string, err error) {
		switch {
		case err == nil:
			fmt.Println("kept", what)
		case errors.Is(err, fault.ErrUnavailable):
			fmt.Println("refused", what)
		default:
			fmt.Println("wrong", what, err)
		}
	}
	if s, err := store.OpenSandboxes(t.Context(), filepath.Join(dir, "sandboxes.db")); err != nil {
		said("opening sandboxes.db", err)
	} else {
		for i := range changes {
			id := "sb" + strconv.Itoa(i)
			_, err := s.Move(t.Context(), sandbox.Entry{Info: sandbox.Info{ID: id}, State: sandbox.Running}, sandbox.Event{Sandbox: id, To: sandbox.Running})
			said(id, err)
		}
		_ = s.Close()
	}
	if s, err := store.OpenTokens(t.Context(), filepath.Join(dir, "tokens.db")); err != nil {
		said("opening tokens.db", err)
	} else {
		for i := range changes {
			id := "tok" + strconv.Itoa(i)
			said(id, s.Put(t.Context(), token.Token{ID: id, Name: id, SecretSHA256: id}))
		}
		_ = s.Close()
	}
}

// TestFaultsOfTheDisk: each call to the file system fails, one by one and from one on,
// as a disk's failures do (C-CF-03). An acknowledged change is there afterwards, what was
// refused is there whole or not at all, it was refused as what can be tried again, and
// the file is sound. The files are what a kernel has; what a disk loses with the power
// is not tried here. (A call that writes half is told to SQLite as one on a full disk.)
func TestFaultsOfTheDisk(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Fatal("this test needs strace; please install it")
	}
	hits := map[string]int{}
	for call, kinds := range map[string][]string{
		"open":      {"EIO", "EIO+", "ENOSPC"},
		"pread64":   {"EIO", "EIO+", "EINTR"},
		"pwrite64":  {"EIO", "EIO+", "ENOSPC", "ENOSPC+", "EINTR"},
		"fsync":     {"EIO", "EIO+", "ENOSPC"},
		"ftruncate": {"EIO", "ENOSPC+"},
		"mmap":      {"EIO"},
		"fstat":     {"EIO"},
	} {
		for _, kind := range kinds {
			name, forever := strings.CutSuffix(kind, "+")
			for n := 1; faulty(t, call, name, n, forever); n++ {
				hits[call]++
			}
		}
		if hits[call] == 0 {
			t.Errorf("no %s ever failed, so nothing was tried", call)
		}
	}
	t.Logf("faults by call: %v", hits)
}

// faulty runs the writer with a fault and judges what it leaves. It tells whether there
// was one: later than the last call there is none.
func faulty(t *testing.T, call, kind string, n int, forever bool) bool {
	t.Helper()
	when := strconv.Itoa(n)
	if forever {
		when += "+"
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace")
	args := []string{"-f", "-qq", "-o", trace, "-e", "trace=" + call, "-e", "inject=" + call + ":error=" + kind + ":when=" + when}
	for _, name := range []string{"sandboxes.db", "tokens.db"} {
		for _, end := range []string{"", "-wal", "-shm", "-journal"} {
			args = append(args, "-P", filepath.Join(dir, name+end))
		}
	}
	cmd := exec.CommandContext(t.Context(), "strace", append(args, os.Args[0], "-test.run=^TestWriter$", "-test.v")...)
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	out, err := cmd.CombinedOutput()
	what := fmt.Sprintf("%s fails with %s at %s", call, kind, when)
	if err != nil || !bytes.Contains(out, []byte("kept tok")) && !bytes.Contains(out, []byte("refused")) {
		t.Fatalf("%s: the writer: %v\n%s", what, err, out)
	}
	var kept []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "kept":
			kept = append(kept, rest)
		case "wrong":
			t.Errorf("%s: %s", what, rest)
		}
	}
	judge(t, what, dir, kept)
	traced, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(traced, []byte("(INJECTED)")) {
		if len(kept) != 2*changes {
			t.Errorf("%s: without a fault only %v were kept", what, kept)
		}
		return false
	}
	return true
}

// judge opens the files on a disk that works.
func judge(t *testing.T, what, dir string, kept []string) {
	t.Helper()
	var found []string
	s, err := store.OpenSandboxes(context.Background(), filepath.Join(dir, "sandboxes.db"))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	entries, err := s.Entries(t.Context())
	events, eerr := s.Events(t.Context(), 0, 100)
	if err := errors.Join(err, eerr, s.Close()); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, e := range entries {
		found = append(found, e.Info.ID)
		if n := len(slices.DeleteFunc(slices.Clone(events), func(ev sandbox.Event) bool { return ev.Sandbox != e.Info.ID })); n != 1 {
			t.Errorf("%s: %s has %d events", what, e.Info.ID, n)
		}
	}
	if len(events) != len(entries) {
		t.Errorf("%s: there are %d events of %d entries", what, len(events), len(entries))
	}
	tokens, err := store.OpenTokens(context.Background(), filepath.Join(dir, "tokens.db"))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	all, err := tokens.List(t.Context())
	if err := errors.Join(err, tokens.Close()); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, one := range all {
		found = append(found, one.ID)
	}
	for _, id := range kept {
		if !slices.Contains(found, id) {
			t.Errorf("%s: %s was acknowledged and is not there; there are %v", what, id, found)
		}
	}
	for _, name := range []string{"sandboxes.db", "tokens.db"} {
		db, err := sql.Open("sqlite", filepath.Join(dir, name))
		var sound string
		if err == nil {
			err = db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&sound)
		}
		if err := errors.Join(err, db.Close()); err != nil || sound != "ok" {
			t.Errorf("%s: %s is not sound: %s, %v", what, name, sound, err)
		}
	}
}
