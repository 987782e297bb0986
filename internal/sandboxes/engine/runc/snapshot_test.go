package runc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// instance is the box's.
func (b box) instance() engine.Instance {
	b.t.Helper()
	inst, err := b.Reopen().Open(b.t.Context(), engine.Handle{Engine: "runc", ID: b.id, State: []byte("{}")})
	if err != nil {
		b.t.Fatal(err)
	}
	return inst
}

func (b box) snapshot(dir string) error {
	return b.instance().(engine.Snapshotter).Snapshot(b.t.Context(), dir, engine.ContentsFiles) //nolint:forcetypeassert // the engine's are
}

// copy starts one from a snapshot, which the test's end destroys.
func (b box) copy(dir string, change func(*engine.Spec)) (box, error) {
	b.t.Helper()
	spec := b.Spec("copy-of-" + b.id)
	if change != nil {
		change(&spec)
	}
	inst, err := b.Engine.(engine.Restorer).Restore(b.t.Context(), spec, dir) //nolint:forcetypeassert // it is one
	if err != nil {
		for _, left := range b.Traces(spec.ID) {
			if !strings.HasPrefix(left, filepath.Join(filepath.Dir(b.Socket), "place")) {
				b.t.Errorf("a copy that failed left %s", left)
			}
		}
		return box{}, err
	}
	b.t.Cleanup(func() {
		if err := inst.Destroy(context.WithoutCancel(b.t.Context())); err != nil {
			b.t.Error(err)
		}
	})
	c := box{Subject: b.Subject, t: b.t, id: spec.ID}
	c.configure()
	return c, nil
}

// TestACopyHasWhatWasWritten: also what was deleted of the template, directories that hide
// those of the template, links, times, modes, owners, and what fills nothing. The copy's
// users are other users of the host.
func TestACopyHasWhatWasWritten(t *testing.T) {
	b := newSite(t).box(t, "written")
	b.must("", "rm ~/lower; mkdir ~/sub; echo own >~/new; chmod 600 ~/new")
	b.must("root", `set -e
rm -r /opt; mkdir /opt; echo new >/opt/new
mkdir /srv; echo one >/srv/one; ln /srv/one /srv/two; ln -s /nowhere /srv/link; mkfifo /srv/pipe
truncate -s 1T /srv/hole; chmod 4751 /srv/one; touch -d 2001-02-03 /srv/one /srv
mv /etc/passwd /etc/moved; cp /etc/moved /etc/passwd`)
	look := `cd /srv; stat -c '%n %a %u:%g %h %s %Y %F' * . /home/agent /home/agent/*; cat one; readlink link; ls -A /etc /home /home/agent /opt; cat /etc/passwd`
	want := b.must("root", look)
	if !strings.Contains(want, "one 4751 0:0 2 4 981") || !strings.Contains(want, "hole 644 0:0 1 1099511627776") ||
		!strings.Contains(want, "/home/agent/new 600 1000:1000") || strings.Contains(want, "hidden") || strings.Contains(want, "lower") {
		t.Fatalf("INCONCLUSIVE: the source has %s", want)
	}
	dir := filepath.Join(t.TempDir(), "image")
	if err := b.snapshot(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "upper")); err != nil || info.Size() > 1<<20 {
		t.Errorf("the snapshot has %d bytes (%v)", info.Size(), err)
	}
	c, err := b.copy(dir, func(spec *engine.Spec) { spec.Owner.HostUID, spec.Owner.HostGID = 54321, 54321 })
	if err != nil {
		t.Fatal(err)
	}
	if got := c.must("root", look); got != want {
		t.Errorf("the copy has\n%s\nand its source\n%s", got, want)
	}
	c.must("", "echo more >>/home/agent/new")
	if got := b.must("", "cat /home/agent/new"); got != "own" {
		t.Errorf("the source has %q", got)
	}
}

// must is what a script prints that succeeds.
func (b box) must(user, script string) string {
	b.t.Helper()
	text, code := b.says(user, script)
	if code != 0 {
		b.t.Fatalf("%s: %d: %s", script, code, text)
	}
	return text
}

// TestWhatASnapshotDoesNotFit: another root, and a disk that is too small, are refused;
// nothing is left.
func TestWhatASnapshotDoesNotFit(t *testing.T) {
	b := newSite(t).box(t, "fits")
	b.must("", "head -c 30000000 /dev/urandom >/home/agent/big")
	dir := filepath.Join(t.TempDir(), "image")
	if err := b.snapshot(dir); err != nil {
		t.Fatal(err)
	}
	_, err := b.copy(dir, func(spec *engine.Spec) { spec.Root = engine.Root{Kind: engine.RootDir, Path: "/"} })
	if !errors.Is(err, fault.ErrConflict) {
		t.Errorf("another root: %v", err)
	}
	_, err = b.copy(dir, func(spec *engine.Spec) { spec.Limits.DiskBytes = 16 << 20 })
	if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a small disk: %v", err)
	}
	if _, err = b.copy(dir, nil); err != nil {
		t.Errorf("INCONCLUSIVE: %v", err)
	}
}

// TestAnEndInTheMiddleOfASnapshot: what stands still for a snapshot can be destroyed, and
// nothing of either is left.
func TestAnEndInTheMiddleOfASnapshot(t *testing.T) {
	s := newSite(t)
	for name, sweep := range map[string]bool{"destroyed": false, "swept": true} {
		t.Run(name, func(t *testing.T) { endInTheMiddle(t, s.box(t, "middle"), sweep) })
	}
}

func endInTheMiddle(t *testing.T, b box, sweep bool) {
	t.Helper()
	place := t.TempDir()
	if err := os.WriteFile(filepath.Join(place, holdFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- b.snapshot(filepath.Join(place, "image")) }()
	await(t, func() bool { _, err := os.Stat(filepath.Join(place, heldFile)); return err == nil })
	if frozen := b.frozen(); !frozen {
		t.Error("INCONCLUSIVE: it does not stand still")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	end := b.instance().Destroy
	if sweep {
		end = func(ctx context.Context) error { return b.Reopen().Sweep(ctx, b.id) }
	}
	if err := end(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-written; err == nil {
		t.Error("the snapshot succeeded")
	}
	if left := b.Traces(b.id); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(filepath.Join(place, "image")); !os.IsNotExist(err) {
		t.Errorf("an image is left: %v", err)
	}
}

// frozen tells what the kernel says of the box.
func (b box) frozen() bool {
	b.t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/freezer/*/*/" + b.id + "/freezer.state", "/sys/fs/cgroup/*/*/" + b.id + "/cgroup.freeze"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, path := range found {
			if data, err := os.ReadFile(path); err == nil && (string(data) == "FROZEN\n" || string(data) == "1\n") {
				return true
			}
		}
	}
	return false
}

func await(t *testing.T, met func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !met() {
		if ctx.Err() != nil {
			t.Fatal("it does not come")
		}
		time.Sleep(time.Millisecond)
	}
}
