package gvisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// siteVariable names a site that a parent test has laid out for this process.
const siteVariable = "ENGINETEST_SITE"

// form is a form of a root, and how much of the contract is tested with it.
type form struct {
	kind  engine.RootKind
	tests func(*testing.T, enginetest.Factory)
}

func TestSuite(t *testing.T) {
	s := newSite(t)
	for _, f := range forms() {
		t.Run(string(f.kind), func(t *testing.T) {
			f.tests(t, func(t *testing.T) *enginetest.Subject {
				t.Helper()
				return s.subject(t, f.kind)
			})
		})
	}
}

// TestRootless runs the suite again as a user without any rights, not even
// subordinate ids.
func TestRootless(t *testing.T) {
	if os.Getenv(siteVariable) != "" {
		rootless(t)
		return
	}
	if !asNobody {
		t.Skip("it is with -tags long; in ordinary runs test/e2e/testdata/normal-user.txt runs a sandbox as such a user")
	}
	const nobody = 54321
	s := newSite(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	install(t, s.runsc, filepath.Join(s.dir, "runsc"))
	install(t, self, filepath.Join(s.dir, "suite"))
	if err := os.Chown(s.dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.dir, "suite"), "-test.run=^TestRootless$", "-test.v")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), siteVariable+"="+s.dir, "TMPDIR="+s.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func rootless(t *testing.T) {
	t.Helper()
	s := newSite(t)
	for _, f := range forms() {
		t.Run(string(f.kind), func(t *testing.T) {
			subject := s.subject(t, f.kind)
			subject.NoWeak = true
			caps, err := subject.Engine.Capabilities(t.Context())
			if err != nil || !caps.Rootless {
				t.Fatalf("capabilities %+v, %v", caps, err)
			}
			f.tests(t, func(*testing.T) *enginetest.Subject { return subject })
			other := subject.Spec("for-another")
			other.Owner.HostUID++
			if _, err := subject.Engine.Create(t.Context(), other); !errors.Is(err, fault.ErrForbidden) {
				t.Errorf("a sandbox for another user: %v", err)
			}
			noSnapshots(t, subject)
		})
	}
}

// noSnapshots: who can't restore one makes none.
func noSnapshots(t *testing.T, s *enginetest.Subject) {
	t.Helper()
	inst, err := s.Engine.Create(t.Context(), s.Spec("no-snapshots"))
	if err != nil {
		t.Fatal(err)
	}
	defer destroy(t, inst)
	dir := filepath.Join(t.TempDir(), "snapshot")
	for _, contents := range []engine.Contents{engine.ContentsMemory, engine.ContentsFiles} {
		if err := inst.(engine.Snapshotter).Snapshot(t.Context(), dir, contents); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("a snapshot of %s: %v", contents, err)
		}
	}
	if _, err := s.Engine.(engine.Restorer).Restore(t.Context(), s.Spec("copy"), dir); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a restore: %v", err)
	}
}

func install(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestManyAtOnce: creates and destroys beside each other leave nothing.
func TestManyAtOnce(t *testing.T) {
	subject := newSite(t).subject(t, engine.RootImage)
	const lanes, rounds = 3, 4
	var group sync.WaitGroup
	for lane := range lanes {
		group.Go(func() {
			for round := range rounds {
				id := fmt.Sprintf("many-%d-%d", lane, round)
				inst, err := subject.Engine.Create(t.Context(), subject.Spec(id))
				if err != nil {
					t.Errorf("%s: %v", id, err)
					continue
				}
				if _, err := subject.Keeper.Call(t.Context(), id, channel.Call{Kind: channel.CallPing}); err != nil {
					t.Errorf("%s: ping: %v", id, err)
				}
				if err := inst.Destroy(t.Context()); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				if left := subject.Traces(id); len(left) > 0 {
					t.Errorf("%s left %v", id, left)
				}
			}
		})
	}
	group.Wait()
}

// forgetful is a keeper that has lost its memory, as a new one has after the
// old one was killed.
type forgetful struct{ *keeper.Client }

func (forgetful) Kill(_ context.Context, id string) error {
	return fault.New(fault.ErrNotFound, "there is no sandbox %s", id)
}

func (forgetful) Forget(ctx context.Context, id string) error {
	return forgetful{}.Kill(ctx, id)
}

// TestSweepFindsWhatNoKeeperKnows: processes too.
func TestSweepFindsWhatNoKeeperKnows(t *testing.T) {
	s := newSite(t)
	subject := s.subject(t, engine.RootImage)
	client, ok := subject.Keeper.(*keeper.Client)
	if !ok {
		t.Fatalf("the suite's keeper is a %T", subject.Keeper)
	}
	inst, err := subject.Engine.Create(t.Context(), subject.Spec("orphan"))
	if err != nil {
		t.Fatal(err)
	}
	stranger := gvisor.New(s.config(t, "image"+fmt.Sprint(os.Geteuid())), forgetful{client})
	if err := stranger.Sweep(t.Context(), "orphan"); err != nil {
		t.Errorf("sweep: %v", err)
	}
	exit, err := inst.Wait(t.Context())
	if err == nil && exit.Reason != "killed" {
		t.Errorf("wait after the sweep: %+v", exit)
	}
	if err := client.Forget(t.Context(), "orphan"); err != nil && !errors.Is(err, fault.ErrNotFound) {
		t.Error(err) // the keeper of this test has not lost anything
	}
	if left := subject.Traces("orphan"); len(left) > 0 {
		t.Errorf("the sweep left %v", left)
	}
}

func TestUnavailableSaysHowToGetIt(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "absent"), plain, dir} {
		e := gvisor.New(gvisor.Config{Runsc: path, Root: dir, StateDir: dir}, keeper.Dial(filepath.Join(dir, "no.sock")))
		if _, err := e.Capabilities(t.Context()); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
