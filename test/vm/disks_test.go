package vm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// workshop is where the parts of the machine are made and kept.
type workshop struct {
	t    *testing.T
	repo string
	dir  string // .cofferdam/vm
}

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	w := workshop{t: t, repo: repo, dir: filepath.Join(repo, ".cofferdam", "vm")}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs a program that must succeed, and returns what it prints.
func (w workshop) run(dir string, argv ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "LC_ALL=C")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, out, errs.String())
	}
	return string(out)
}

// keep returns a part that is made of what its key says: the one that is there, or a new
// one, for which others of its name go. build gets the path under which it has to be.
func (w workshop) keep(name string, key []string, build func(path string)) string {
	w.t.Helper()
	sum := sha256.Sum256([]byte(strings.Join(key, "\x00")))
	path := filepath.Join(w.dir, name+"-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	old, err := filepath.Glob(filepath.Join(w.dir, name+"-*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, one := range old {
		if err := os.RemoveAll(one); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Logf("making %s", path)
	build(path + ".new")
	if err := os.Rename(path+".new", path); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// disk makes an image of a directory: an ext4 of megabytes, sparse.
func (w workshop) disk(label, dir, path string, megabytes int) {
	w.t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Truncate(path, int64(megabytes)<<20); err != nil {
		w.t.Fatal(err)
	}
	w.run(w.dir, "mkfs.ext4", "-q", "-F", "-L", label, "-O", "^has_journal", "-d", dir, path)
}

// scratch is a directory below the workshop: a temporary one of the system may be in memory.
func (w workshop) scratch() string {
	w.t.Helper()
	dir, err := os.MkdirTemp(w.dir, "scratch-")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // apt fetches as a user of its own
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			w.t.Error(err)
		}
	})
	return dir
}

// digest is of all files below a directory, with their paths.
func (w workshop) digest(dir string) string {
	w.t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s %x\n", strings.TrimPrefix(path, dir), sha256.Sum256(data))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// put writes a file and the directories above it.
func (w workshop) put(path string, data []byte, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		w.t.Fatal(err)
	}
}

// copied puts a file of the host somewhere else.
func (w workshop) copied(from, to string, mode os.FileMode) {
	w.t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		w.t.Fatalf("%v: `make build template` makes what is missing", err)
	}
	w.put(to, data, mode)
}

// room: the disks need some gigabytes.
func (w workshop) room() {
	w.t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(w.dir, &st); err != nil {
		w.t.Fatal(err)
	}
	if free := st.Bavail * uint64(st.Bsize) >> 20; free < 6000 {
		w.t.Fatalf("%s has %d MB free, and the machine's disks need 6000", w.dir, free)
	}
}
