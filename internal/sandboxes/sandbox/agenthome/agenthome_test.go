package agenthome

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func wanted(name string, places ...string) Want {
	return Want{Home: Home{UID: os.Getuid(), Name: name}, GID: os.Getgid(), Places: places, Inside: "/home/agent", Most: 1 << 20}
}

// TestHomes: a home's places are shown where they belong, keep what is in them, and go with
// the home.
func TestHomes(t *testing.T) {
	t.Parallel()
	s := NewShelf(filepath.Join(t.TempDir(), "homes"))
	w := wanted("work", ".claude", ".local/share/opencode")
	shown, err := s.Mounts(t.Context(), w)
	if err != nil || len(shown) != 2 || shown[1].Destination != "/home/agent/.local/share/opencode" || shown[0].ReadOnly {
		t.Fatal(shown, err)
	}
	if err := os.WriteFile(filepath.Join(shown[0].Source, "login"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if above := Above(append(w.Places, ".local/state/opencode")); !slices.Equal(above, []string{".local", ".local/share", ".local/state"}) {
		t.Error(above)
	}
	again, err := s.Mounts(t.Context(), w)
	if err != nil || !slices.Equal(again, shown) {
		t.Error(again, err)
	}
	if other, err := s.Mounts(t.Context(), wanted("play", ".claude")); err != nil || other[0].Source == shown[0].Source {
		t.Error(other, err)
	}
	all, err := s.List(t.Context(), w.UID)
	if err != nil || len(all) != 2 || all[1].Name != "work" || !slices.Equal(all[1].Places, w.Places) || all[1].Bytes < 4096 || all[1].Used.IsZero() {
		t.Errorf("%+v %v", all, err)
	}
	if none, err := s.List(t.Context(), w.UID+1); err != nil || len(none) > 0 {
		t.Errorf("another user's: %v %v", none, err)
	}
	if err := s.Remove(Home{UID: w.UID + 1, Name: "work"}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("another user's: %v", err)
	}
	if err := s.Remove(w.Home); err != nil {
		t.Error(err)
	}
	if all, err := s.List(t.Context(), w.UID); err != nil || len(all) != 1 {
		t.Errorf("%+v %v", all, err)
	}
	if err := s.Remove(w.Home); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestOneSandboxHasAHome: not two at a time, and nobody removes it meanwhile.
func TestOneSandboxHasAHome(t *testing.T) {
	t.Parallel()
	s := NewShelf(t.TempDir())
	h := wanted("work").Home
	if _, err := s.Mounts(t.Context(), wanted("work", ".claude")); err != nil {
		t.Fatal(err)
	}
	if err := s.Take(h, "sb-1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Take(h, "sb-2"); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "the home work is the sandbox sb-1's") {
		t.Errorf("%v", err)
	}
	if err := s.Remove(h); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("%v", err)
	}
	for _, other := range []Home{{UID: h.UID, Name: "play"}, {UID: h.UID + 1, Name: "work"}, {}} {
		if err := s.Take(other, "sb-3"); err != nil {
			t.Errorf("%+v: %v", other, err)
		}
	}
	s.Rename("sb-1", "sb-4")
	if all, err := s.List(t.Context(), h.UID); err != nil || len(all) != 1 || all[0].Sandbox != "sb-4" {
		t.Errorf("%+v %v", all, err)
	}
	s.Drop("sb-4")
	s.Put(h, "sb-5")
	if err := s.Take(h, "sb-2"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("after a daemon's death: %v", err)
	}
	s.Drop("sb-5")
	if err := errors.Join(s.Take(h, "sb-2"), s.Take(Home{}, "sb-2")); err != nil {
		t.Error(err)
	}
}

// TestNobodyWaitsForADisk: while a home is measured or removed, others begin and end, and
// what is being removed is nobody's home any more.
func TestNobodyWaitsForADisk(t *testing.T) {
	t.Parallel()
	s := NewShelf(t.TempDir())
	measured, removed := 0, 0
	others := func() {
		if !s.mu.TryLock() {
			t.Error("the lock is held over the disk")
			return
		}
		s.mu.Unlock()
		s.Drop("sb-9")
		if err := s.Take(Home{UID: 7, Name: "other"}, "sb-8"); err != nil {
			t.Error(err)
		}
	}
	s.measure = func(ctx context.Context, dir string) (Kept, error) {
		measured++
		others()
		return measure(ctx, dir)
	}
	s.remove = func(dir string) error {
		removed++
		others()
		if all, err := s.List(t.Context(), os.Getuid()); err != nil || len(all) > 0 {
			t.Errorf("what is being removed is listed: %v %v", all, err)
		}
		return os.RemoveAll(dir)
	}
	w := wanted("work", ".claude")
	if _, err := s.Mounts(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.pathOf(w.Home)+goneMark+"0", 0o700); err != nil { // a daemon died
		t.Fatal(err)
	}
	if err := s.Remove(w.Home); err != nil {
		t.Fatal(err)
	}
	if measured == 0 || removed != 2 {
		t.Errorf("measured %d times, and removed %d", measured, removed)
	}
	if left, err := os.ReadDir(s.pathOf(Home{UID: w.UID})); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestDeepHomes: directories in each other are looked at up to a depth, and that bound is told as what it is.
func TestDeepHomes(t *testing.T) {
	t.Parallel()
	for depth, past := range map[int]string{mostDepth: "", mostDepth + 2: `has more than 500 directories in each other in "d"`} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", depth)), 0o700); err != nil {
			t.Fatal(err)
		}
		k, err := measure(t.Context(), dir)
		if err != nil || k.Past != past || k.Entries > depth+1 {
			t.Errorf("%d deep: %q, %d entries, %v", depth, k.Past, k.Entries, err)
		}
	}
}

// TestLinksInHomes: what a sandbox leaves in a home leads nobody out of it.
func TestLinksInHomes(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewShelf(t.TempDir())
	w := wanted("work", ".config/a", ".config/b")
	shown, err := s.Mounts(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": outside, "up": "../../..", "file": precious, "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(shown[0].Source, name)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.List(t.Context(), w.UID)
	if err != nil || len(all) != 1 || all[0].Bytes >= 64<<10 {
		t.Errorf("%+v %v", all, err)
	}
	if again, err := s.Mounts(t.Context(), w); err != nil || !slices.Equal(again, shown) {
		t.Errorf("%v %v", again, err)
	}
	if err := s.Remove(w.Home); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("what a link led to is gone: %v", err)
	}
}

// TestHomesHaveBounds: by what they take on the disk, not by what files say of themselves.
func TestHomesHaveBounds(t *testing.T) {
	t.Parallel()
	s := NewShelf(t.TempDir())
	w := wanted("work", ".claude")
	shown, err := s.Mounts(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Take(w.Home, "sb-1"); err != nil {
		t.Fatal(err)
	}
	most := func(string) Limit { return Limit{Bytes: w.Most} }
	sparse, err := os.Create(filepath.Join(shown[0].Source, "sparse"))
	if err == nil {
		err = errors.Join(sparse.Truncate(1<<40), sparse.Close())
	}
	if over := s.Over(t.Context(), most); err != nil || len(over) > 0 {
		t.Errorf("%v %v", over, err)
	}
	if err := os.WriteFile(filepath.Join(shown[0].Source, "big"), make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if over := s.Over(t.Context(), most); over["sb-1"].Name != "work" || over["sb-1"].Bytes < 2<<20 {
		t.Errorf("%v", over)
	}
	if _, err := s.Mounts(t.Context(), w); !errors.Is(err, fault.ErrExhausted) || !strings.Contains(err.Error(), "the home work has 2 MiB, and the policy's disk is 1") {
		t.Errorf("%v", err)
	}
}

// TestWhatIsNoHome: each is one sentence, and makes nothing.
func TestWhatIsNoHome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := NewShelf(dir)
	for _, w := range []Want{
		wanted("", ".claude"), wanted("..", ".claude"), wanted("a/b", ".claude"), wanted("a.b", ".claude"), wanted(strings.Repeat("a", 65), ".claude"),
		wanted("a"), wanted("a", "."), wanted("a", ".."), wanted("a", "../x"), wanted("a", "/etc"), wanted("a", "x/../../y"), wanted("a", "x+y"), wanted("a", ""), wanted("a", "a b"),
		wanted("a", ".x", ".x"), wanted("a", ".x", ".x/y"), wanted("a", ".x/y", ".x"),
	} {
		if shown, err := s.Mounts(t.Context(), w); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q %q: %v %v", w.Name, w.Places, shown, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}
