package homes

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox/homes/homestest"
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
		for name, text := range map[string]string{"fd": "", "fdinfo": "pos:\t0\nflags:\t0100000\nmnt_id:\t" + mount + "\n"} {
			if err := os.WriteFile(filepath.Join(dir, name, descriptor), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var asked []string
	u := newUnlinked(hostpath.Spot{Device: "8:1", Path: "/homes"})
	u.mounts["42"] = "0/desk"
	u.stat = func(path string, _ int, st *unix.Statx_t) error {
		asked = append(asked, filepath.Base(path))
		*st = unix.Statx_t{Mode: unix.S_IFREG, Ino: 7, Blocks: 2, Mnt_id: 42}
		return nil
	}
	for _, descriptor := range []string{"3", "4"} {
		u.add(process{}, dir, descriptor)
	}
	if len(asked) != 1 || asked[0] != "4" || u.found["0/desk"] != (open{files: 1, bytes: 2 * block}) {
		t.Errorf("the descriptors %v are asked about, and found is %v", asked, u.found)
	}
}

func TestMain(m *testing.M) {
	homestest.Play()
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

// TestWhatIsHeldWithoutAName: a removed file counts, or it is told that there is one, in whichever way a process holds it. The
// control has a name.
func TestWhatIsHeldWithoutAName(t *testing.T) {
	t.Parallel()
	counts := open{files: 1, bytes: homestest.Held}
	mapped := counts
	if os.Geteuid() != 0 {
		mapped = open{unseen: 1}
	}
	for way, want := range map[string]open{
		homestest.Named: {}, homestest.Open: counts, homestest.InThread: counts, homestest.Mapped: mapped, homestest.Sent: {unseen: 1}, homestest.SentSent: {unseen: 1},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			dir, place := homeOf(t)
			homestest.Start(t, way, place)
			found, err := readUnlinked(dir)
			if err != nil || found["7/work"] != want {
				t.Errorf("found is %+v, %v; want %+v", found, err, want)
			}
		})
	}
}

// TestAProgramWithoutAName counts, also if nothing of it is mapped any more: here maps are not looked at.
func TestAProgramWithoutAName(t *testing.T) {
	t.Parallel()
	dir, place := homeOf(t)
	pid := homestest.Start(t, homestest.Program, place)
	opened, err := hostpath.Follow(dir)
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
	table, err := hostpath.ReadTable()
	if err != nil {
		t.Fatal(err)
	}
	spot, _ := table.SpotOf(opened.Name)
	u := newUnlinked(spot)
	if _, err := u.processes(); err != nil {
		t.Fatal(err)
	}
	u.addProgram(process{dir: filepath.Join("/proc", strconv.Itoa(pid)), home: "7/work"})
	if got := u.found["7/work"]; got.files != 1 || got.bytes < homestest.Held {
		t.Errorf("found is %+v", u.found)
	}
}

// TestWhatIsUnseenIsLetBeUntilTheDiskIsShort: a sandbox that holds something in a message is over where it may hold nothing
// unseen, and one that does not is not.
func TestWhatIsUnseenIsLetBeUntilTheDiskIsShort(t *testing.T) {
	t.Parallel()
	for way, unseen := range map[string]bool{homestest.Sent: true, homestest.Open: false} {
		dir, place := homeOf(t)
		homestest.Start(t, way, place)
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

// BenchmarkReadUnlinked is a look at 200 processes in the mounts of a sandbox with a home.
func BenchmarkReadUnlinked(b *testing.B) {
	dir, place := homeOf(b)
	homestest.Start(b, homestest.Crowd, place)
	for b.Loop() {
		if _, err := readUnlinked(dir); err != nil {
			b.Fatal(err)
		}
	}
}
