package mounts

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const testDisk = 64 << 20

// identityOf is what a file system says of itself.
func identityOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data[superAt+identityAt : superAt+identityAt+identityLen])
}

// sound has the system's own checker look at a disk, each checksum included.
func sound(t *testing.T, file string) error {
	t.Helper()
	out, err := exec.Command("/usr/sbin/e2fsck", "-f", "-n", file).CombinedOutput()
	t.Logf("%s", out)
	return err
}

func needMkfs(t *testing.T) {
	t.Helper()
	if _, err := findMkfs(); err != nil {
		t.Skip(err)
	}
}

func TestDisksOfABlank(t *testing.T) {
	needMkfs(t)
	dir := t.TempDir()
	b := Blanks{Dir: filepath.Join(dir, "blanks")}
	seen := map[string]bool{}
	for n := range 3 { // the first makes the blank
		file := filepath.Join(dir, strconv.Itoa(n))
		if err := b.Make(t.Context(), file, testDisk); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Size() != testDisk || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		if err := sound(t, file); err != nil {
			t.Errorf("disk %d: %v", n, err)
		}
		seen[identityOf(t, file)] = true
	}
	kept, err := os.ReadDir(b.Dir)
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v %v", kept, err)
	}
	seen[identityOf(t, filepath.Join(b.Dir, kept[0].Name()))] = true
	if len(seen) != 4 {
		t.Errorf("%d identities of a blank and three disks", len(seen))
	}
	// The checker does see a wrong checksum.
	spoilt, err := os.ReadFile(filepath.Join(dir, "0"))
	if err != nil {
		t.Fatal(err)
	}
	spoilt[superAt+checksumAt] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "spoilt"), spoilt, 0o600); err != nil {
		t.Fatal(err)
	}
	if sound(t, filepath.Join(dir, "spoilt")) == nil {
		t.Error("the checker took a wrong checksum")
	}
}

func TestBlanksAreBounded(t *testing.T) {
	needMkfs(t)
	dir := t.TempDir()
	b := Blanks{Dir: filepath.Join(dir, "blanks")}
	for n := range maxBlanks + 2 {
		if err := b.Make(t.Context(), filepath.Join(dir, strconv.Itoa(n)), testDisk+int64(n)<<20); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadDir(b.Dir); err != nil || len(kept) != maxBlanks {
		t.Errorf("%d are kept: %v", len(kept), err)
	}
	last := filepath.Join(dir, strconv.Itoa(maxBlanks+1))
	if err := sound(t, last); err != nil {
		t.Error(err)
	}
}

func TestADisksFileIsNew(t *testing.T) {
	needMkfs(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "disk")
	if err := os.WriteFile(file, []byte("another's"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Blanks{Dir: filepath.Join(dir, "blanks")}.Make(t.Context(), file, testDisk)
	if !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, []byte("another's")) {
		t.Errorf("%q %v", data, err)
	}
}

// A blank that another release kept, or nobody finished, goes; one that may be in the making stays.
func TestBlanksAreTidied(t *testing.T) {
	needMkfs(t)
	dir := t.TempDir()
	b := Blanks{Dir: filepath.Join(dir, "blanks")}
	for name, age := range map[string]time.Duration{"new-old": time.Hour, "new-now": 0, "ext4-0-7": time.Hour} {
		path := filepath.Join(b.Dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Make(t.Context(), filepath.Join(dir, "disk"), testDisk); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadDir(b.Dir)
	if err != nil || len(kept) != 2 || kept[0].Name() != blankForm+strconv.Itoa(testDisk) || kept[1].Name() != "new-now" {
		t.Errorf("%v %v", kept, err)
	}
}

// A blank that is none makes no disk, and says which directory is in the way.
func TestASpoiltBlank(t *testing.T) {
	needMkfs(t)
	dir := t.TempDir()
	b := Blanks{Dir: filepath.Join(dir, "blanks")}
	if err := b.Make(t.Context(), filepath.Join(dir, "first"), testDisk); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.Dir, blankForm+strconv.Itoa(testDisk)), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Make(t.Context(), filepath.Join(dir, "second"), testDisk); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), b.Dir) {
		t.Error(err)
	}
}
