package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWithLimits: the kernel of a sandbox is told of its own limits where its parent tells it of the
// host's, and nothing else is changed.
func TestWithLimits(t *testing.T) {
	const config = `{"linux":{"resources":{"memory":{"limit":1000},"cpu":{"quota":%,"period":100000}}}}`
	cpus := strconv.Itoa(min(2, runtime.NumCPU()))
	for name, c := range map[string]struct {
		args, config, want string
	}{
		"limits":           {"runsc --root=/r boot --spec-fd=5 --total-memory 5000 id", strings.ReplaceAll(config, "%", "50000"), "runsc --root=/r boot --cpu-num " + cpus + " --spec-fd=5 --total-memory 1000 id"},
		"a smaller host":   {"runsc boot --spec-fd=5 --total-memory 500 id", `{"linux":{"resources":{"memory":{"limit":1000}}}}`, "runsc boot --spec-fd=5 --total-memory 500 id"},
		"no limits":        {"runsc boot --spec-fd=5 --total-memory 500 id", `{"linux":{}}`, "runsc boot --spec-fd=5 --total-memory 500 id"},
		"it is told":       {"runsc boot --spec-fd=5 --cpu-num 7 --total-memory 500 id", strings.ReplaceAll(config, "%", "50000"), "runsc boot --spec-fd=5 --cpu-num 7 --total-memory 500 id"},
		"no config":        {"runsc boot --spec-fd=5 --total-memory 500 id", "", "runsc boot --spec-fd=5 --total-memory 500 id"},
		"another config":   {"runsc boot --spec-fd=5 --total-memory 500 id", "[", "runsc boot --spec-fd=5 --total-memory 500 id"},
		"no number":        {"runsc boot --spec-fd=5 --total-memory x id", `{"linux":{"resources":{"memory":{"limit":1000}}}}`, "runsc boot --spec-fd=5 --total-memory x id"},
		"a negative limit": {"runsc boot --spec-fd=5 --total-memory 500 id", `{"linux":{"resources":{"memory":{"limit":-1}}}}`, "runsc boot --spec-fd=5 --total-memory 500 id"},
		"another command":  {"runsc run --spec-fd=5 --total-memory 500 id", strings.ReplaceAll(config, "%", "50000"), "runsc run --spec-fd=5 --total-memory 500 id"},
		"started again":    {"runsc boot --cpu-num=7 --spec-fd=5 --total-memory=1000 id", strings.ReplaceAll(config, "%", "50000"), "runsc boot --cpu-num=7 --spec-fd=5 --total-memory=1000 id"},
		"no descriptor":    {"runsc boot --spec-fd=x --total-memory 500 id", "", "runsc boot --spec-fd=x --total-memory 500 id"},
		"no bundle":        {"runsc boot --total-memory 500 id", strings.ReplaceAll(config, "%", "50000"), "runsc boot --total-memory 500 id"},
		"nothing more":     {"runsc boot", "", "runsc boot"},
	} {
		read := func(fd int) []byte {
			if fd != 5 {
				t.Errorf("%s: descriptor %d is read", name, fd)
			}
			return []byte(c.config)
		}
		if got := withLimits(strings.Fields(c.args), read); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// TestReadAt: a file is read from its beginning whatever was read of it, and nothing of it is used up.
func TestReadAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	want := strings.Repeat("x", 200_000)
	if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(100, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got := readAt(int(file.Fd())); string(got) != want {
		t.Errorf("read are %d bytes", len(got))
	}
	if at, err := file.Seek(0, io.SeekCurrent); at != 100 || err != nil {
		t.Errorf("the offset is %d: %v", at, err)
	}
	if got := readAt(1 << 20); got != nil {
		t.Errorf("of no file %q is read", got)
	}
}
