package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// roleOfFiles is roleDaemon of one that pauses without memory.
const roleOfFiles = "sandbox-daemon-of-files"

// ofPauses are the points of a pause and a resume.
func ofPauses() []faultpoint.Point {
	return slices.DeleteFunc(faultpoint.All(), func(p faultpoint.Point) bool {
		kind, _, _ := strings.Cut(string(p), ".")
		return p == faultpoint.ResumeForFiles || !slices.Contains([]string{"pause", "freeze", "resume", "thaw"}, kind)
	})
}

// TestKilledInAPauseOfFiles: a guest that is started anew has no identity until it is
// told. Whenever the daemon is killed, the next one has the sandbox as it was, or gives
// its guest the identity that it had: what runs in it then has the environment of its
// create.
func TestKilledInAPauseOfFiles(t *testing.T) {
	if len(ofPauses()) < 10 {
		t.Fatalf("INCONCLUSIVE: of pauses there are only %v", ofPauses())
	}
	for _, point := range ofPauses() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answers := w.crashAs(t, roleOfFiles, point)
			w.wantGoesOn(t, point, answers)
		})
	}
	t.Run("and the daemon that mends it is killed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		answers := w.crashAs(t, roleOfFiles, faultpoint.ThawRunning)
		w.crashAs(t, roleOfFiles, faultpoint.CreateConfigured) // in its Recover: nothing is created there
		w.wantGoesOn(t, faultpoint.ThawRunning, answers)
	})
}

// wantGoesOn: the next daemon has the sandbox, and it can be used.
func (w *world) wantGoesOn(t *testing.T, point faultpoint.Point, answers map[string]string) {
	t.Helper()
	d := w.daemon(t)
	if len(d.List()) != 1 {
		t.Errorf("%d sandboxes live, want the one that was paused", len(d.List()))
	}
	d.judge(t, point, answers)
	for _, s := range d.List() {
		d.goOn(t, s)
	}
	d.nothingLeft(t)
	d.wantOneEnd(t)
}

// TestKilledBeforeAnIdentityThatIsLost: of a guest that can't be told who it is nothing
// is left, and its end is on record.
func TestKilledBeforeAnIdentityThatIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answers := w.crashAs(t, roleOfFiles, faultpoint.ThawRunning)
	kept, err := filepath.Glob(w.path("baselines", "made-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("INCONCLUSIVE: what sandboxes were made with is in %v, %v", kept, err)
	}
	must(t, os.Remove(kept[0]))
	await(t, "the guest that was started anew runs", func() bool { return slices.Equal(w.processes(), []string{answers["created"]}) })
	d := w.daemon(t)
	d.nothingLeft(t)
	d.wantOneEnd(t)
	records := d.records(t, answers["created"])
	if slices.Contains(records, audit.Adopted) || !slices.Contains(records, audit.Finished) {
		t.Errorf("its records are %v", records)
	}
	if _, err := d.Start(t.Context(), answers["created"], sandbox.Command{Argv: []string{"/bin/true"}}); err == nil {
		t.Error("a command runs in it")
	}
}
