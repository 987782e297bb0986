package atomicfile_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// TestMain is also the program that strace looks at.
func TestMain(m *testing.M) {
	if path := os.Getenv("WHOLEFILE_REPLACE"); path != "" {
		if err := atomicfile.Replace(path, []byte("x"), 0o600); err != nil {
			panic(err)
		}
		if err := atomicfile.ReplaceVolatile(path+"2", []byte("x"), 0o600); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// The kernel is asked for what the package promises: the content goes to the disk
// before the file takes its name, and the directory after that. A volatile file goes
// nowhere. strace is the witness, where there is one.
func TestDurableInOrder(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Log("no strace here: make test-all has it")
		return
	}
	path := filepath.Join(t.TempDir(), "a")
	cmd := exec.CommandContext(t.Context(), strace, "-qq", "-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", os.Args[0])
	cmd.Env = append(os.Environ(), "WHOLEFILE_REPLACE="+path)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var calls []string
	for _, m := range regexp.MustCompile(`(fsync|rename)(?:at2?)?\((.*)\) += 0`).FindAllStringSubmatch(string(said), -1) {
		what := m[1]
		if strings.Contains(m[2], ".a2.new-") {
			what += " volatile"
		} else if strings.Contains(m[2], ".a.new-") {
			what += " file"
		}
		calls = append(calls, what)
	}
	if got := strings.Join(calls, ", "); got != "fsync file, rename file, fsync, rename volatile" {
		t.Errorf("%s\n%s", got, said)
	}
}
