package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// TestReboot: the machine goes down without a warning and comes up again (C-CF-07).
// What lived, and what was paused, ends once, with the reason on record; snapshots are
// what they were, the log is whole and nothing is left. Programs, mounts, control groups
// and the runtime directory are as after a boot; the kernel and its id of the boot stay
// the same, and have a test of their own (sandbox.TestClockOverRestarts).
func TestReboot(t *testing.T) {
	t.Parallel()
	in := start(t, "default_template: debian\n")
	t.Cleanup(func() { in.revive(t) })
	in.warmUp(t)
	before := in.settled(t)
	w, paused := in.witness(t), in.create("debian", nothingAllowed)
	in.run(w.sandbox, "sh", "-c", "echo kept > "+markFile)
	snap, err := in.Client.MakeSnapshot(t.Context(), w.sandbox.ID, api.MakeSnapshot{Name: "kept"})
	if err == nil {
		_, err = in.Client.Pause(t.Context(), paused.ID)
	}
	if err != nil {
		t.Fatal(err)
	}

	in.reboot(t, w.sandbox.ID, paused.ID)
	in.launch(t)
	in.answers(t)
	if all := in.wantAgreement(t); len(all) > 0 {
		t.Errorf("after the reboot there are %v", all)
	}
	in.wantOneEnd(t)
	for _, id := range []string{w.sandbox.ID, paused.ID} {
		in.wantEndOnRecord(t, id)
	}
	again, err := in.Client.CreateSandbox(t.Context(), api.CreateSandbox{Snapshot: snap.ID, Linger: true})
	if err != nil {
		t.Fatalf("of a snapshot from before: %v\n%s", err, in.log())
	}
	in.wantUse(t, again, "kept\n")
	in.clear(t)
	in.wantBack(t, before)
	verify := exec.Command(filepath.Join(binaries(repository(t)), "cofferdam"), "audit", "verify")
	verify.Env = in.environ()
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("the log after the reboot: %v\n%s", err, out)
	}
}

// wantEndOnRecord: a sandbox has one end in the log, that of one whose keeper ended.
func (in *installation) wantEndOnRecord(t *testing.T, id string) {
	t.Helper()
	var ends []string
	for line, err := range in.Client.Records(t.Context(), client.RecordFilter{Sandbox: id, Kinds: []string{"sandbox"}, Outcomes: []string{"finished"}}) {
		var r struct{ Reason string }
		if err == nil {
			err = json.Unmarshal(line, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, r.Reason)
	}
	if len(ends) != 1 || !strings.Contains(ends[0], "its keeper ended") {
		t.Errorf("the ends of %s on record are %q", id, ends)
	}
}

// reboot ends every process of the installation at once and takes away what is not on
// a disk: mounts, control groups of those sandboxes, the runtime directory's files.
func (in *installation) reboot(t *testing.T, ids ...string) {
	t.Helper()
	in.cutOff()
	in.unmount(t)
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.ContainsFunc(strings.FieldsFunc(d.Name(), notOfID), func(word string) bool { return slices.Contains(ids, word) }) {
			until(t, "the control group "+path+" is empty", func() bool { err := syscall.Rmdir(path); return err == nil || errors.Is(err, syscall.ENOENT) })
			return fs.SkipDir
		}
		return nil
	})
	files, err := os.ReadDir(in.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.RemoveAll(filepath.Join(in.Runtime, f.Name())); err != nil {
			t.Error(err)
		}
	}
}

// cutOff kills every process of the installation, until there is none.
func (in *installation) cutOff() {
	for family := in.family(); ; family = in.family() {
		living := 0
		for pid := range family {
			if syscall.Kill(pid, syscall.SIGKILL) == nil && pid != in.Daemon.Process.Pid {
				living++
			}
		}
		if in.Daemon.ProcessState == nil {
			in.Daemon.Wait() // an error: it was killed
		}
		if living == 0 {
			break
		}
	}
}

// unmount takes away what is mounted in the installation's directories.
func (in *installation) unmount(t *testing.T) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(mounts) {
		if at := string(bytes.Fields(line)[4]); strings.HasPrefix(at, in.State+"/") || strings.HasPrefix(at, in.Runtime+"/") {
			if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", at, err)
			}
		}
	}
}
