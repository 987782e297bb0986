package template

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// installer stands for mmdebstrap: it says what mmdebstrap says, and hands out
// what customize.sh would. What reality can't give on demand (a dead mirror, a
// full disk) it fails with, as the file BEHAVIOUR beside it tells.
const installer = `#!/bin/bash
here=$(dirname "$0")
behaviour=$(cat "$here/BEHAVIOUR" 2>/dev/null)
echo run >>"$here/RUNS"
echo "I: running apt-get update..." >&2
for arg; do
	case $arg in
	"--setup-hook=sync-in"*)
		debs=$(echo "$arg" | sed "s/.*sync-in '//; s/'.*//")
		ls "$debs" >"$here/DEBS" ;;
	esac
done
case $behaviour in
network) echo "Err:1 http://mirror.example/debian bookworm InRelease" >&2; echo "E: Failed to fetch http://mirror.example/debian" >&2; exit 25 ;;
full) echo "E: write failed: No space left on device" >&2; exit 25 ;;
unsigned) echo "E: The repository is not signed." >&2; exit 25 ;;
odd) echo "E: the moon is full" >&2; exit 3 ;;
deaf) trap '' TERM; sleep 1000 & echo $! >"$here/CHILD.new"; mv "$here/CHILD.new" "$here/CHILD"; wait ;;
holder) ( until [ -e "$here/GO" ] || ! [ -e "$0" ]; do sleep 0.01; done ) & ;;
hang) sleep 1000 & echo $! >"$here/CHILD.new"; mv "$here/CHILD.new" "$here/CHILD"; wait ;;
esac
echo "I: downloading packages with apt..." >&2
echo "0 upgraded, 2 newly installed, 0 to remove and 0 not upgraded." >&2
echo "Get:1 http://mirror.example bookworm/main amd64 a 1 [1 kB]" >&2
echo "Get:2 http://mirror.example bookworm/main amd64 b 1 [1 kB]" >&2
echo "I: installing essential packages..." >&2
for p in a b; do echo "Unpacking $p (1) ..." >&2; echo "Setting up $p (1) ..." >&2; done
echo "cofferdam: user" >&2
if [ -e "$here/KEEP" ]; then
	until [ -e "$TOOLS" ]; do sleep 0.01; done
	cp "$TOOLS" "$here/KEPT"
fi
[ -z "$IMAGE" ] || [ "$behaviour" = empty ] || echo "image $(cat "$here/CONTENT" 2>/dev/null)" >"$IMAGE"
for arg; do
	case $arg in
	"--customize-hook=download"*)
		to=$(echo "$arg" | sed "s/.* '//; s/'\$//")
		case $to in
		*packages.tsv)
			echo "a package" >"$debs/bash_5.2_amd64.deb"
			echo "not in the template" >"$debs/other_1_amd64.deb"
			printf 'bash\t5.2\tamd64\n' >"$to" ;;
		*python.tsv) printf 'pip\t23.0.1\t/usr/lib/python3/dist-packages\n' >"$to" ;;
		*rootfs.erofs) [ "$behaviour" = empty ] || echo "image $(cat "$here/CONTENT" 2>/dev/null)" >"$to" ;;
		esac ;;
	esac
done
`

// workshop is a store whose tools are imitations, and the folder of these.
func workshop(t *testing.T) (*Store, string) {
	t.Helper()
	tools, root := t.TempDir(), t.TempDir()
	put(t, filepath.Join(tools, "mmdebstrap"), installer, 0o755)
	for _, name := range []string{"mkfs.erofs", "newuidmap"} {
		put(t, filepath.Join(tools, name), "#!/bin/sh\n", 0o755)
	}
	put(t, filepath.Join(root, "etc/os-release"), "ID=debian\nVERSION_CODENAME=bookworm\n", 0o644)
	put(t, filepath.Join(root, "etc/apt/sources.list"), "deb http://mirror.example/debian bookworm main\n", 0o644)
	s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{HostRoot: root, FindTool: useTools(t, tools+":"+os.Getenv("PATH"))})
	s.pins = func(string) []pin { return nil }
	return s, tools
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition; the test's own deadline bounds it.
func until(t *testing.T, met func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-t.Context().Done():
			t.Fatal("never")
		case <-tick.C:
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// leftovers are what only a running build may have in a store.
func leftovers(t *testing.T, s *Store) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, ".building-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestBuildPublishes(t *testing.T) {
	s, tools := workshop(t)
	if _, err := s.Get(t.Context(), NameDebian); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "cofferdam template build debian") {
		t.Errorf("before: %v", err)
	}
	var steps []Progress
	built, err := s.Build(t.Context(), NameDebian, func(p Progress) { steps = append(steps, p) })
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), NameDebian)
	if err != nil || got.Digest != built.Digest || got.Root.Kind != engine.RootImage || !filepath.IsAbs(got.Root.Path) {
		t.Errorf("%+v %v", got, err)
	}
	if l, err := s.Ledger(got); err != nil || len(l.System) != 1 || len(l.Python) != 1 || l.System[0].Name != "bash" {
		t.Errorf("ledger %+v %v", l, err)
	}
	last := 0
	for _, p := range steps {
		if p.Percent != 0 && p.Percent < last {
			t.Errorf("progress went back: %+v", steps)
		}
		last = max(last, p.Percent)
	}
	if last != 100 || len(steps) < 6 {
		t.Errorf("progress: %+v", steps)
	}
	// The same content again is the same generation; other content is another,
	// and the old one stays for those who use it.
	if _, err := s.Build(t.Context(), NameDebian, nil); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(tools, "CONTENT"), "new", 0o644)
	newer, err := s.Build(t.Context(), NameDebian, nil)
	if err != nil || newer.Digest == built.Digest || !exists(built.Root.Path) {
		t.Errorf("%+v %v", newer, err)
	}
	if n, err := s.generations(NameDebian); err != nil || len(n) != 2 {
		t.Errorf("%d generations %v", len(n), err)
	}
	if left := leftovers(t, s); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestPruneAndRemove(t *testing.T) {
	s, tools := workshop(t)
	used := map[string]bool{}
	s.opt.InUse = func(digest string) bool { return used[digest] }
	build := func(content string) Template {
		t.Helper()
		put(t, filepath.Join(tools, "CONTENT"), content, 0o644)
		made, err := s.Build(t.Context(), NameDebian, nil)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := build("1")
	used[first.Digest] = true
	second := build("2")
	third := build("3")
	if !exists(first.Root.Path) || exists(second.Root.Path) || !exists(third.Root.Path) {
		t.Error("what is in use and what is current stays, the rest goes")
	}
	if err := s.Remove(t.Context(), NameDebian); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("removed in use: %v", err)
	}
	clear(used)
	if err := s.Remove(t.Context(), NameDebian); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), NameDebian); !errors.Is(err, fault.ErrConflict) {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), NameDebian); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
}

func TestFailuresKeepWhatWasThere(t *testing.T) {
	s, tools := workshop(t)
	before, err := s.Build(t.Context(), NameDebian, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(tools, "CONTENT"), "never seen", 0o644)
	for behaviour, want := range map[string]string{
		"network": "cannot be reached", "full": "disk is full", "unsigned": "signature", "odd": "the moon is full", "empty": "stored",
	} {
		t.Run(behaviour, func(t *testing.T) {
			put(t, filepath.Join(tools, "BEHAVIOUR"), behaviour, 0o644)
			_, err := s.Build(t.Context(), NameDebian, nil)
			if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q in it", err, want)
			}
			if got, err := s.Get(t.Context(), NameDebian); err != nil || got.Digest != before.Digest {
				t.Errorf("%+v %v", got, err)
			}
			if left := leftovers(t, s); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestBuildsAtOnce(t *testing.T) {
	s, _ := workshop(t)
	var wg sync.WaitGroup
	digests := make([]string, 4)
	for i := range digests {
		wg.Go(func() {
			made, err := s.Build(t.Context(), NameDebian, nil)
			if err != nil {
				t.Error(err)
			}
			digests[i] = made.Digest
		})
	}
	wg.Wait()
	for _, d := range digests {
		if d != digests[0] || d == "" {
			t.Errorf("%v", digests)
		}
	}
}

// TestCancel: nothing of the tool runs on, and nothing is left.
func TestCancel(t *testing.T) {
	s, tools := workshop(t)
	put(t, filepath.Join(tools, "BEHAVIOUR"), "hang", 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := s.Build(ctx, NameDebian, nil)
		done <- err
	}()
	child := filepath.Join(tools, "CHILD")
	until(t, func() bool { return exists(child) })
	// A second builder waits for the lock, and can be called off alone.
	brief, stop := context.WithCancel(t.Context())
	_, err := s.Build(brief, NameDebian, func(p Progress) {
		if p.Step == "waiting" {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the waiting one: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	until(t, func() bool { return gone(t, child) })
	if left := leftovers(t, s); left != nil {
		t.Errorf("left: %v", left)
	}
}

// TestCancelOfADeafTool: one that takes no notice of a TERM, or was not there yet when it came, goes all the same, with
// all that it has started.
func TestCancelOfADeafTool(t *testing.T) {
	s, tools := workshop(t)
	s.grace = 50 * time.Millisecond
	put(t, filepath.Join(tools, "BEHAVIOUR"), "deaf", 0o644)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := s.Build(ctx, NameDebian, nil)
		done <- err
	}()
	child := filepath.Join(tools, "CHILD")
	until(t, func() bool { return exists(child) })
	if gone(t, child) {
		t.Fatal("positive control: it should live")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
	until(t, func() bool { return gone(t, child) })
	if left := leftovers(t, s); left != nil {
		t.Errorf("left: %v", left)
	}
}

// TestToolWhoseOutputIsHeld: what a tool leaves running, with its output, holds up no build that is done.
func TestToolWhoseOutputIsHeld(t *testing.T) {
	s, tools := workshop(t)
	s.grace = 50 * time.Millisecond
	put(t, filepath.Join(tools, "BEHAVIOUR"), "holder", 0o644)
	t.Cleanup(func() { put(t, filepath.Join(tools, "GO"), "", 0o644) })
	if _, err := s.Build(t.Context(), NameDebian, nil); err != nil {
		t.Error(err)
	}
}

// gone says whether the process whose number a file holds has ended.
func gone(t *testing.T, file string) bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(raw)), "stat"))
	return err != nil || strings.Contains(string(status), ") Z ")
}

const envBuilder = "TEMPLATE_TEST_BUILDER"

// TestMain lets the test binary be a builder that can be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(envBuilder); dir != "" {
		s := NewStore(dir, Options{HostRoot: os.Getenv("TEMPLATE_TEST_ROOT"), FindTool: onPath})
		s.pins = func(string) []pin { return nil }
		if _, err := s.Build(context.Background(), NameDebian, nil); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestKilled: a builder that is killed takes its tool along, and the next
// build removes what it left and is not held up.
func TestKilled(t *testing.T) {
	s, tools := workshop(t)
	put(t, filepath.Join(tools, "BEHAVIOUR"), "hang", 0o644)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), envBuilder+"="+s.dir, "TEMPLATE_TEST_ROOT="+s.opt.HostRoot)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := filepath.Join(tools, "CHILD")
	until(t, func() bool { return exists(child) })
	if err := cmd.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, func() bool { return gone(t, child) })
	if leftovers(t, s) == nil {
		t.Error("positive control: a killed build should have left its folder")
	}
	if _, err := s.Get(t.Context(), NameDebian); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("half a template is offered: %v", err)
	}
	put(t, filepath.Join(tools, "BEHAVIOUR"), "", 0o644)
	if _, err := s.Build(t.Context(), NameDebian, nil); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, s); left != nil {
		t.Errorf("left: %v", left)
	}
}

func TestUnknownName(t *testing.T) {
	t.Parallel()
	s := NewStore(t.TempDir(), Options{})
	for _, name := range []string{"", "alpine", "../host", "host/"} {
		_, getErr := s.Get(t.Context(), name)
		_, buildErr := s.Build(t.Context(), name, nil)
		for _, err := range []error{getErr, buildErr, s.Remove(t.Context(), name)} {
			if !errors.Is(err, fault.ErrNotFound) || !strings.Contains(err.Error(), "debian, dev, code-interpreter, host") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func TestDamagedIsSaid(t *testing.T) {
	s, _ := workshop(t)
	made, err := s.Build(t.Context(), NameDebian, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"short image": func() error { return os.Truncate(made.Root.Path, 1) },
		"no image":    func() error { return os.Remove(made.Root.Path) },
		"half a file": func() error { return os.Truncate(filepath.Join(filepath.Dir(made.Root.Path), "template.json"), 10) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(name, err)
		}
		if _, err := s.Get(t.Context(), NameDebian); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "build") {
			t.Errorf("%s: %v", name, err)
		}
		if again, err := s.Build(t.Context(), NameDebian, nil); err != nil || again.Digest != made.Digest {
			t.Errorf("%s: a build does not mend it: %v", name, err)
		}
	}
}

func TestStoreThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "", 0o600)
	s := NewStore(filepath.Join(file, "templates"), Options{})
	if _, err := s.Build(t.Context(), NameHost, nil); !errors.Is(err, fault.ErrUnavailable) {
		t.Error(err)
	}
}
