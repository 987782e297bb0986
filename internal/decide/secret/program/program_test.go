package program_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/program"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sourcetest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// script makes a program of a shell script.
func script(t *testing.T, text string) *program.Command {
	t.Helper()
	path := filepath.Join(t.TempDir(), "printer")
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return &program.Command{Argv: []string{"/bin/sh", path}}
}

func TestConforms(t *testing.T) {
	sourcetest.Conforms(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		has := filepath.Join(t.TempDir(), "has")
		printer := script(t, "[ ! -p '"+has+"' ] || echo canary-on-the-way >&2\ncat '"+has+"'\n")
		remove := func(t *testing.T) {
			t.Helper()
			if err := os.Remove(has); err != nil {
				t.Fatal(err)
			}
		}
		return sourcetest.Harness{
			Source: printer,
			Put: func(t *testing.T, text string) {
				t.Helper()
				if err := os.WriteFile(has, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			Remove: remove,
			Stall: func(t *testing.T) {
				t.Helper()
				remove(t)
				if err := unix.Mkfifo(has, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// TestAProgramThatPrintsWithoutEnd is ended, and so is one that fails after it printed.
func TestAProgramThatPrintsWithoutEnd(t *testing.T) {
	for text, want := range map[string]string{
		"while :; do echo canary-canary-canary; done\n": "prints more than a secret",
		"echo canary-secret; echo canary >&2; exit 3\n": "failed with exit status 3",
		"echo canary-secret; kill -9 $$\n":              "failed with signal: killed",
		"head -c 1000000 /dev/zero | tr '\\0' c\n":      "prints more than a secret",
		"printf 'canary-\\0secret\\n'\n":                "another control character in it; a secret is one line",
		"printf 'canary-secret\\ncanary-other\\n'\n":    "another control character in it; a secret is one line",
	} {
		v, err := script(t, text).Fetch(t.Context())
		if !errors.Is(err, fault.ErrUnavailable) || !strings.HasSuffix(err.Error(), want) || v.Reveal() != "" || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := (&program.Command{Argv: []string{"/no/such/program"}}).Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "can't be started") {
		t.Error(err)
	}
}

// TestAProgramsChildrenEndWithIt, however it ends.
func TestAProgramsChildrenEndWithIt(t *testing.T) {
	for name, end := range map[string]string{"in time": "echo the-secret", "too late": "wait"} {
		left := filepath.Join(t.TempDir(), "left")
		if err := unix.Mkfifo(left, 0o600); err != nil {
			t.Fatal(err)
		}
		printer := script(t, "sleep 1000 >/dev/null & echo $! >'"+left+"'\n"+end+"\n")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pids := make(chan int, 1)
		go func() {
			text, _ := os.ReadFile(left)
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			if pids <- pid; name == "too late" {
				cancel()
			}
		}()
		v, err := printer.Fetch(ctx)
		if (err == nil) != (name == "in time") || err == nil && v.Reveal() != "the-secret" {
			t.Errorf("%s: %v", name, err)
		}
		pid := <-pids
		if pid <= 1 {
			t.Fatalf("%s: no child", name)
		}
		looks, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
		for !gone(pid) {
			select {
			case <-looks.C:
			case <-late:
				t.Fatalf("%s: the child %d goes on", name, pid)
			}
		}
		looks.Stop()
	}
}

// gone tells whether a process has ended; nobody may have waited for it.
func gone(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(state, "Z")
}
