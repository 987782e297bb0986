package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
)

// clock is one that a test moves.
type clock struct{ now time.Time }

func (c *clock) time() time.Time { return c.now }

func open(t *testing.T, dir string, change func(*Config)) *Store {
	t.Helper()
	c := Config{Dir: dir, Room: Room{Bytes: 1 << 30, Count: 100}, ColdAfter: 10 * time.Minute, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&c)
	}
	s, err := Open(c)
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// draw writes an image as an engine does: some bytes, a hole and more bytes.
func draw(t *testing.T, d *Draft) {
	t.Helper()
	must(t, image.Make(d.Image()))
	f, err := os.Create(filepath.Join(d.Image(), "pages.img"))
	must(t, err)
	noise := make([]byte, 100_000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise) // never fails
	for _, at := range []int64{0, 20 << 20} {
		_, err = f.WriteAt(noise, at)
		must(t, err)
	}
	must(t, f.Truncate(30<<20))
	must(t, f.Close())
	must(t, os.WriteFile(filepath.Join(d.Image(), "checkpoint.img"), []byte("state of "+d.ID()), 0o600))
	must(t, image.Seal(d.Image(), "sb1"))
}

func make1(t *testing.T, s *Store, id, owner, name string) Manifest {
	t.Helper()
	d, err := s.Begin(owner, id, 1<<20, true)
	must(t, err)
	draw(t, d)
	must(t, d.Attach("facts.json", []byte(`{"a":1}`)))
	m, _, err := d.Finish(Manifest{
		Name: name, Owner: owner, Created: time.Now().UTC(), Contents: engine.ContentsMemory, Template: "sha256:t", Body: json.RawMessage(`{"of":"<sb1>"}`),
	})
	must(t, err)
	must(t, d.Publish(m, 7))
	must(t, d.Drop()) // does nothing any more
	return m
}

func TestASnapshotIsWholeAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "", "first")
	for range 2 {
		l, err := s.Lease(t.Context(), "", "first")
		must(t, err)
		if l.ID != "snap1" || l.Record != 7 || l.Template != "sha256:t" || string(l.Body) != `{"of":"\u003csb1\u003e"}` && string(l.Body) != `{"of":"<sb1>"}` {
			t.Errorf("%+v", l.Snapshot)
		}
		must(t, image.Verify(l.Image(), "sb1"))
		if data, err := l.Attachment("facts.json"); err != nil || string(data) != `{"a":1}` {
			t.Errorf("attachment: %s, %v", data, err)
		}
		if data, err := l.Attachment("other.json"); err != nil || data != nil {
			t.Errorf("an attachment that is not there: %s, %v", data, err)
		}
		if _, err := s.Remove("", "snap1"); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("one that is read was removed: %v", err)
		}
		l.Release()
		l.Release()
		s = open(t, dir, nil)
	}
	if !s.Uses("sha256:t") || s.Uses("sha256:u") {
		t.Error("the template is not known")
	}
	_, err := s.Remove("", "snap1")
	must(t, err)
	if _, err := s.Lease(t.Context(), "", "snap1"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("after its removal: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestNamesAndOwners: the newest has the name, over a restart, and owners see
// their own.
func TestNamesAndOwners(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "tok-a", "n")
	make1(t, s, "snap2", "tok-a", "n")
	make1(t, s, "snap3", "tok-b", "n")
	must(t, writeState(filepath.Join(dir, "snap1"), mutable{Record: 7})) // as if a crash had come before
	for range 2 {
		for _, c := range []struct{ owner, ref, want string }{
			{"tok-a", "n", "snap2"}, {"tok-a", "snap1", "snap1"}, {"tok-b", "n", "snap3"}, {"tok-b", "snap1", ""}, {"", "snap1", "snap1"}, {"", "n", ""}, {"tok-a", "", ""},
		} {
			l, err := s.Lease(t.Context(), c.owner, c.ref)
			if err != nil && (c.want != "" || !errors.Is(err, fault.ErrNotFound)) {
				t.Errorf("%+v: %v", c, err)
			}
			if err == nil {
				if l.ID != c.want {
					t.Errorf("%+v: %s", c, l.ID)
				}
				l.Release()
			}
		}
		s = open(t, dir, nil)
	}
	if list := s.List(); len(list) != 3 || list[0].Name != "" || list[1].Name != "n" {
		t.Errorf("%+v", list)
	}
}

// TestEveryChangedByteIsFound: of the manifest, of the seal and of an attachment;
// the engine finds those of the image. Swapped images and directories, too.
func TestEveryChangedByteIsFound(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "tok-a", "")
	make1(t, s, "snap2", "tok-b", "")
	check := func(what string) {
		t.Helper()
		l, err := s.Lease(t.Context(), "", "snap1")
		if err == nil {
			_, err = l.Attachment("facts.json")
			l.Release()
		}
		if !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, name := range []string{"manifest.json", "image/seal.json", "facts.json"} {
		path := filepath.Join(dir, "snap1", name)
		good, err := os.ReadFile(path)
		must(t, err)
		for i := range good {
			if len(good) > 300 && i%7 != 0 {
				continue
			}
			bad := bytes.Clone(good)
			bad[i] ^= 1
			must(t, os.WriteFile(path, bad, 0o600))
			check(name)
		}
		must(t, os.WriteFile(path, good[:len(good)-1], 0o600))
		check(name + " cut off")
		must(t, os.WriteFile(path, append(bytes.Clone(good), ' '), 0o600))
		check(name + " with more")
		must(t, os.WriteFile(path, good, 0o600))
	}
	swap := func(a, b string) {
		a, b = filepath.Join(dir, a), filepath.Join(dir, b)
		must(t, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE))
	}
	swap("snap1/image", "snap2/image")
	check("another's image")
	swap("snap1/image", "snap2/image")
	swap("snap1", "snap2")
	check("another's directory")
	if list := open(t, dir, nil).List(); len(list) != 0 {
		t.Errorf("after a restart: %+v", list)
	}
	swap("snap1", "snap2")
	l, err := s.Lease(t.Context(), "", "snap1")
	must(t, err)
	l.Release()
}

func TestRoom(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, func(c *Config) { c.Room = Room{Bytes: 8 << 20, Count: 1} })
	if _, err := s.Begin("", "big", 9<<20, true); !errors.Is(err, fault.ErrExhausted) || !strings.Contains(err.Error(), "max_bytes") {
		t.Errorf("too large: %v", err)
	}
	make1(t, s, "snap1", "", "")
	if _, err := s.Begin("", "snap2", 1, true); !errors.Is(err, fault.ErrExhausted) || !strings.Contains(err.Error(), "max_count") {
		t.Errorf("too many: %v", err)
	}
	d, err := s.Begin("", "fork1", 7<<20, false) // is kept by nobody, so it counts by its bytes only
	must(t, err)
	if _, err := s.Begin("", "fork2", 1<<20, false); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("beside a draft: %v", err)
	}
	if _, err := s.Begin("", "fork1", 1, false); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("the same id: %v", err)
	}
	must(t, d.Drop())
	d, err = s.Begin("", "fork2", 1<<20, false)
	must(t, err)
	must(t, d.Drop())
	s = open(t, dir, func(c *Config) { c.Room = Room{Bytes: 1 << 40, Count: 100, Reserve: 1 << 60} })
	if _, err := s.Begin("", "snap2", 1, true); !errors.Is(err, fault.ErrExhausted) || !strings.Contains(err.Error(), "reserve") {
		t.Errorf("no free space: %v", err)
	}
	for _, id := range []string{"", "../up", "UP", ".new-x", strings.Repeat("a", 65)} {
		if _, err := s.Begin("", id, 0, true); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("the id %q: %v", id, err)
		}
	}
}

// TestWhatIsHalfMadeIsSwept: a draft and a removal that a crash ended are gone
// after a restart; what is no snapshot is left alone and not listed.
func TestWhatIsHalfMadeIsSwept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	make1(t, s, "snap1", "", "")
	d, err := s.Begin("", "snap2", 1, true)
	must(t, err)
	draw(t, d)
	must(t, os.Mkdir(filepath.Join(dir, ".gone-snap3"), 0o700))
	must(t, os.Mkdir(filepath.Join(dir, "other"), 0o700))
	s = open(t, dir, nil)
	if list := s.List(); len(list) != 1 || list[0].ID != "snap1" {
		t.Errorf("%+v", list)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("left: %v", entries)
	}
}

// TestAColdSnapshotComesBackAsItWas, holes included.
func TestAColdSnapshotComesBackAsItWas(t *testing.T) {
	dir, at := t.TempDir(), &clock{time.Now()}
	s := open(t, dir, func(c *Config) { c.Now = at.time })
	make1(t, s, "snap1", "", "")
	plain := diskUse(filepath.Join(dir, "snap1", imageName))
	if s.CompressOne(t.Context()) {
		t.Error("one that was just made was compressed")
	}
	at.now = at.now.Add(11 * time.Minute)
	l, err := s.Lease(t.Context(), "", "snap1")
	must(t, err)
	at.now = at.now.Add(11 * time.Minute)
	if s.CompressOne(t.Context()) {
		t.Error("one that is read was compressed")
	}
	l.Release()
	at.now = at.now.Add(11 * time.Minute)
	if !s.CompressOne(t.Context()) || s.CompressOne(t.Context()) {
		t.Error("it was not compressed once")
	}
	if !s.List()[0].Cold {
		t.Error("it is not cold")
	}
	s = open(t, dir, func(c *Config) { c.Now = at.time })
	l, err = s.Lease(t.Context(), "", "snap1")
	must(t, err)
	defer l.Release()
	must(t, image.Verify(l.Image(), "sb1"))
	if after := diskUse(l.Image()); after > plain+1<<20 {
		t.Errorf("%d bytes of the disk became %d", plain, after)
	}
	if _, err := os.Stat(filepath.Join(dir, "snap1", coldName)); err == nil {
		t.Error("the compressed form is left")
	}
	if s.List()[0].Cold {
		t.Error("it is cold")
	}
}

// TestADamagedColdSnapshot does not start, and stays as it is.
func TestADamagedColdSnapshot(t *testing.T) {
	dir, at := t.TempDir(), &clock{time.Now()}
	s := open(t, dir, func(c *Config) { c.Now = at.time })
	make1(t, s, "snap1", "", "")
	at.now = at.now.Add(11 * time.Minute)
	if !s.CompressOne(t.Context()) {
		t.Fatal("it was not compressed")
	}
	path := filepath.Join(dir, "snap1", coldName, "pages.img"+coldExt)
	good, err := os.ReadFile(path)
	must(t, err)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/4] ^= 1 // within the noise: other bits may mean nothing
	for what, bad := range map[string][]byte{"a flipped byte": flipped, "a short file": good[:len(good)-20], "an empty file": nil, "no zstd": []byte("hello, this is no zstd")} {
		must(t, os.WriteFile(path, bad, 0o600))
		l, err := s.Lease(t.Context(), "", "snap1")
		if err == nil {
			err = image.Verify(l.Image(), "sb1") // as the engine does
			l.Release()
		}
		if !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
		if !s.List()[0].Cold {
			t.Fatalf("%s was taken for whole", what)
		}
	}
	must(t, os.WriteFile(path, good, 0o600))
	l, err := s.Lease(t.Context(), "", "snap1")
	must(t, err)
	defer l.Release()
	must(t, image.Verify(l.Image(), "sb1"))
}

// TestACrashWhileCompressing leaves one of the two forms whole.
func TestACrashWhileCompressing(t *testing.T) {
	for what, crash := range map[string]func(t *testing.T, dir string){
		"before the compressed form is whole": func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Mkdir(filepath.Join(dir, ".cold"), 0o700))
		},
		"with both forms": func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Mkdir(filepath.Join(dir, coldName), 0o700))
		},
		"before the plain form is gone": func(t *testing.T, dir string) {
			t.Helper()
			must(t, os.Mkdir(filepath.Join(dir, ".image"), 0o700))
		},
	} {
		dir := t.TempDir()
		make1(t, open(t, dir, nil), "snap1", "", "")
		crash(t, filepath.Join(dir, "snap1"))
		s := open(t, dir, nil)
		l, err := s.Lease(t.Context(), "", "snap1")
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		must(t, image.Verify(l.Image(), "sb1"))
		l.Release()
		if entries, err := os.ReadDir(filepath.Join(dir, "snap1")); err != nil || len(entries) != 4 {
			t.Errorf("%s: left %v, %v", what, entries, err)
		}
	}
}

// TestAReaderEndsACompression, and gets the image.
func TestAReaderEndsACompression(t *testing.T) {
	dir, at := t.TempDir(), &clock{time.Now()}
	s := open(t, dir, func(c *Config) { c.Now = at.time })
	make1(t, s, "snap1", "", "")
	at.now = at.now.Add(11 * time.Minute)
	k := s.takeDue()
	if _, err := s.Remove("", "snap1"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("removed while it is compressed: %v", err)
	}
	k.readers = 1
	if err := s.compress(context.WithoutCancel(t.Context()), k); !errors.Is(err, errWanted) {
		t.Errorf("compressed for a reader: %v", err)
	}
	must(t, image.Verify(filepath.Join(dir, "snap1", imageName), "sb1"))
}

func TestAttachments(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	d, err := s.Begin("", "snap1", 0, true)
	must(t, err)
	for _, name := range []string{"manifest.json", "state.json", "../x.json", ".x.json", "x", ""} {
		if err := d.Attach(name, nil); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, _, err := d.Finish(Manifest{}); err == nil {
		t.Error("a draft without an image was finished")
	}
	must(t, d.Drop())
}
