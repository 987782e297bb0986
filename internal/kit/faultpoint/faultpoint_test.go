package faultpoint_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
)

const role = "faultpoint-victim"

// TestMain plays the process that dies.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == role {
		faultpoint.Hit(faultpoint.CreatePlanned)
		for range 3 {
			faultpoint.Hit(faultpoint.RecordAsked)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestHit: the named point kills, the time that is named; another one does nothing.
func TestHit(t *testing.T) {
	t.Parallel()
	for point, dies := range map[faultpoint.Point]bool{
		faultpoint.CreatePlanned: true, faultpoint.CreateRunning: false, "": false,
		"record.asked:1": true, "record.asked:3": true, "record.asked:4": false, "record.written:1": false, "record.asked:x": false, "record.asked:0": false,
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], role)
		cmd.Env = append(os.Environ(), faultpoint.Variable+"="+string(point))
		err := cmd.Run()
		ended, _ := errors.AsType[*exec.ExitError](err)
		killed := ended != nil && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if killed != dies || !dies && err != nil {
			t.Errorf("with %q it ended with %v", point, err)
		}
	}
}

// TestAll: no two points have one name.
func TestAll(t *testing.T) {
	t.Parallel()
	all := faultpoint.All()
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != len(all) || len(all) < 40 {
		t.Errorf("%d points: %v", len(all), all)
	}
}
