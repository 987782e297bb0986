package agenthome

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome/agenthometest"
)

// TestOnlyTheFileSystemOfHomesIsAsked: a process of any user may have something open on a file system that does not
// answer. The control is open through a mount of a home.
func TestOnlyTheFileSystemOfHomesIsAsked(t *testing.T) {
	dir := t.TempDir()
	for _, of := range []string{"fd", "fdinfo"} {
		if err := os.Mkdir(filepath.Join(dir, of), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for descriptor, mount := range map[string]string{"3": "41", "4": "42"} {
		if err := errors.Join(
			os.Symlink("/somewhere/file"+deleted, filepath.Join(dir, "fd", descriptor)),
			os.WriteFile(filepath.Join(dir, "fdinfo", descriptor), []byte("pos:\t0\nflags:\t0100000\nmnt_id:\t"+mount+"\n"), 0o600),
		); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	u := newUnlinked(hostpath.Spot{Device: "8:1", Path: "/homes"}, nil)
	u.mounts["42"] = "0/desk"
	u.stat = func(path string, _ int, st *unix.Statx_t) error {
		asked = append(asked, filepath.Base(path))
		*st = unix.Statx_t{Mode: unix.S_IFREG, Ino: 7, Blocks: 2, Mnt_id: 42}
		return nil
	}
	for _, descriptor := range []string{"3", "4"} {
		u.addDescriptor(process{space: &space{}}, dir, descriptor)
	}
	if len(asked) != 1 || asked[0] != "4" || u.found["0/desk"] != (open{files: 1, bytes: 2 * block}) {
		t.Errorf("the descriptors %v are asked about, and found is %v", asked, u.found)
	}
}

func of(home string) map[string]bool { return map[string]bool{home: true} }

func TestMain(m *testing.M) {
	agenthometest.Play()
	os.Exit(m.Run())
}

// homeOf makes a home with one place in a directory of homes.
func homeOf(tb testing.TB) (dir, place string) {
	tb.Helper()
	dir = tb.TempDir()
	place = filepath.Join(dir, "7", "work", ".claude")
	if err := os.MkdirAll(place, 0o700); err != nil {
		tb.Fatal(err)
	}
	return dir, place
}

// TestAProgramWithoutAName counts, also if nothing of it is mapped any more: here maps are not looked at.
func TestAProgramWithoutAName(t *testing.T) {
	t.Parallel()
	dir, place := homeOf(t)
	pid := agenthometest.Start(t, agenthometest.Program, place)
	u, err := unlinkedBelow(dir, of("7/work"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.processes(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.addNamed(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	if got := u.found["7/work"]; got.files != 1 || got.bytes < agenthometest.Held {
		t.Errorf("found is %+v", u.found)
	}
}

// TestWhatIsUnseenIsLetBeUntilTheDiskIsShort: a sandbox that holds something in a message is over where it may hold nothing
// unseen, and one that does not is not.
func TestWhatIsUnseenIsLetBeUntilTheDiskIsShort(t *testing.T) {
	t.Parallel()
	for way, unseen := range map[string]bool{agenthometest.Sent: true, agenthometest.Open: false} {
		dir, place := homeOf(t)
		agenthometest.Start(t, way, place)
		s := NewShelf(dir)
		s.Put(Home{UID: 7, Name: "work"}, "sb-1")
		for _, seen := range []bool{false, true} {
			over := s.Over(t.Context(), func(string) Limit { return Limit{Bytes: 1 << 30, Seen: seen} })
			if _, is := over["sb-1"]; is != (unseen && seen) {
				t.Errorf("%s, where all is to be seen %t: over are %v", way, seen, over)
			}
		}
	}
}

// lookAt looks at what processes hold of the homes in a directory, with a bound of descriptors for each home.
func lookAt(t *testing.T, dir string, most int, taken map[string]bool) *unlinked {
	t.Helper()
	u, err := unlinkedBelow(dir, taken)
	if err != nil {
		t.Fatal(err)
	}
	u.most.descriptors = most
	if err := u.lookAtAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestALookHasABoundForEachHome: a sandbox that holds more than is looked at is over, and the look at the home of another, which
// comes behind it, is as good as without it. In the control there is room for all.
func TestALookHasABoundForEachHome(t *testing.T) {
	t.Parallel()
	for _, most := range []int{agenthometest.ManyOpen / 2, MostDescriptors} {
		dir, place := homeOf(t)
		other := filepath.Join(dir, "7", "other", ".claude")
		if err := os.MkdirAll(other, 0o700); err != nil {
			t.Fatal(err)
		}
		agenthometest.Start(t, agenthometest.Many, place)
		agenthometest.Start(t, agenthometest.Open, other)
		u := lookAt(t, dir, most, map[string]bool{"7/work": true, "7/other": true})
		want := map[string]open{"7/other": {files: 1, bytes: agenthometest.Held}, "7/work": {unread: true}}
		if most == MostDescriptors {
			want["7/work"] = open{files: 1, bytes: agenthometest.Held}
		} else {
			got := u.found["7/work"]
			got.files, got.bytes = 0, 0 // it may have come in time
			u.found["7/work"] = got
		}
		if !maps.Equal(u.found, want) {
			t.Errorf("with a bound of %d, found is %+v", most, u.found)
		}
		if n := u.spent["7/work"].descriptors; n > most {
			t.Errorf("%d descriptors are looked at, of %d", n, most)
		}
	}
}

// TestWhoHasNoHomeIsHardlyLookedAt: the descriptors of a sandbox without a home, or with one that is no sandbox's any more,
// cost those with a home little.
func TestWhoHasNoHomeIsHardlyLookedAt(t *testing.T) {
	t.Parallel()
	dir, place := homeOf(t)
	agenthometest.Start(t, agenthometest.Open, place)
	for _, stranger := range []string{t.TempDir(), filepath.Join(dir, "7", "gone", ".claude")} {
		if err := os.MkdirAll(stranger, 0o700); err != nil {
			t.Fatal(err)
		}
		pid := agenthometest.Start(t, agenthometest.Many, stranger)
		in, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", "mnt"))
		if err != nil {
			t.Fatal(err)
		}
		u := lookAt(t, dir, MostDescriptors, of("7/work"))
		if n := u.spaces[in].spent.descriptors; n == 0 || n > firstDescriptors {
			t.Errorf("%d descriptors of a namespace without a home are looked at", n)
		}
		if want := (open{files: 1, bytes: agenthometest.Held}); len(u.found) != 1 || u.found["7/work"] != want {
			t.Errorf("found is %+v", u.found)
		}
	}
}

// TestALookTakesTime is what bounds it where few descriptors take long, and it ends with its context.
func TestALookTakesTime(t *testing.T) {
	t.Parallel()
	u := newUnlinked(hostpath.Spot{}, nil)
	var now time.Duration
	u.clock = func() time.Duration { now += time.Second; return now }
	p := process{space: &space{home: "7/work"}}
	n := 0
	for u.spendWork(t.Context(), p, 1, func() { n++ }) {
	}
	if !u.found["7/work"].unread || n < 2 || n > 10 {
		t.Errorf("%d of a second each are looked at, and found is %+v", n, u.found)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	dir, place := homeOf(t)
	agenthometest.Start(t, agenthometest.Open, place)
	if found, err := readUnlinked(over, dir, of("7/work"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("found is %v, %v", found, err)
	}
	if u.spendWork(over, process{space: &space{}}, 1, func() { n++ }) {
		t.Error("it is looked on")
	}
}

// BenchmarkReadUnlinked is a look at 200 processes in the mounts of a sandbox with a home.
func BenchmarkReadUnlinked(b *testing.B) {
	dir, place := homeOf(b)
	agenthometest.Start(b, agenthometest.Crowd, place)
	for b.Loop() {
		if _, err := readUnlinked(b.Context(), dir, of("7/work"), map[string]bool{}); err != nil {
			b.Fatal(err)
		}
	}
}
