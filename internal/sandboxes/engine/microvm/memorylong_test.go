//go:build long

package microvm_test

import (
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/microvm"
)

// remembers is a command that has 50 MB in a machine's memory.
const remembers = "dd if=/dev/urandom of=/dev/shm/f bs=1M count=50 2>/dev/null; md5sum </dev/shm/f"

// TestMemoryOfCopies: copies are made of an image's files, which stay as they were; each has
// memory of its own, and all of that counts as its sandbox's.
func TestMemoryOfCopies(t *testing.T) {
	s := newSite(t)
	subject := s.subject(t)
	began := time.Now()
	source := s.box(t, subject, s.spec("source"))
	boot := time.Since(began)
	sum, code := source.says("", remembers)
	if code != 0 {
		t.Fatal(sum)
	}
	image := source.image(t, engine.ContentsMemory)
	before := digests(t, image)
	memory := size(t, filepath.Join(image, "memory"))
	if stream := size(t, filepath.Join(image, "machine")); stream > 1<<20 || memory < 60<<20 {
		t.Errorf("the stream has %d bytes, and the memory %d", stream, memory)
	}
	var files []os.FileInfo
	for _, id := range []string{"one", "two"} {
		began := time.Now()
		c := s.copied(t, subject, s.spec(id), image)
		t.Logf("a copy takes %v, a boot %v", time.Since(began), boot)
		if counted := s.counted(t, id); counted < memory {
			t.Errorf("%d bytes of memory count as the copy's, of %d", counted, memory)
		}
		if text, code := c.says("", "md5sum </dev/shm/f && echo other >/dev/shm/f"); text != sum || code != 0 {
			t.Errorf("the copy has %q, %d; its source %q", text, code, sum)
		}
		known, err := c.Keeper.Get(t.Context(), id)
		if err != nil || len(known.Pids) != 1 {
			t.Fatalf("%+v, %v", known, err)
		}
		info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(known.Pids[0]), "root/memory/ram"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, info)
	}
	if os.SameFile(files[0], files[1]) {
		t.Error("two copies have the same memory")
	}
	if now := digests(t, image); !maps.Equal(before, now) {
		t.Errorf("the image was %x, and is %x", before, now)
	}
	if text, _ := source.says("", "md5sum </dev/shm/f"); text != sum {
		t.Errorf("the source has %q", text)
	}
}

// TestCopiesOfOlderVersions: what an older version wrote, with the memory in the stream, goes
// on, and so does a copy of that, and a machine that ran when the new version came.
func TestCopiesOfOlderVersions(t *testing.T) {
	s := newSite(t)
	now := s.subject(t)
	older := *now
	older.Engine = now.Reopen().(*microvm.Engine).ByStream()
	source := s.box(t, &older, s.spec("older"))
	sum, code := source.says("", remembers)
	if code != 0 {
		t.Fatal(sum)
	}
	image := source.image(t, engine.ContentsMemory)
	if _, err := os.Lstat(filepath.Join(image, "memory")); err == nil {
		t.Error("INCONCLUSIVE: the image is like those of today")
	}
	one := s.copied(t, now, s.spec("one"), image)
	inst, err := now.Engine.Open(t.Context(), source.inst.Handle())
	if err != nil {
		t.Fatal(err)
	}
	running := source
	running.inst = inst
	for id, c := range map[string]box{
		"two":   s.copied(t, now, s.spec("two"), one.image(t, engine.ContentsMemory)),
		"three": s.copied(t, now, s.spec("three"), running.image(t, engine.ContentsMemory)),
	} {
		if text, code := c.says("", "md5sum </dev/shm/f"); text != sum || code != 0 {
			t.Errorf("%s has %q, %d; the source %q", id, text, code, sum)
		}
	}
}

// image is one of the machine's.
func (b box) image(t *testing.T, contents engine.Contents) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	if err := b.inst.(engine.Snapshotter).Snapshot(t.Context(), dir, contents); err != nil {
		t.Fatal(err)
	}
	return dir
}

// counted is how much of files in memory the control group of a machine answers for.
func (s site) counted(t *testing.T, id string) int64 {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/*", "/sys/fs/cgroup"} {
		found, err := filepath.Glob(filepath.Join(pattern, s.config().CgroupParent, "*", id, "memory.stat"))
		if err != nil || len(found) == 0 {
			continue
		}
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if text, ok := strings.CutPrefix(line, "shmem "); ok {
				n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Fatalf("the machine %s has no control group of memory", id)
	return 0
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// digests are those of the files of a folder.
func digests(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][sha256.Size]byte{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = sha256.Sum256(data)
	}
	return all
}
