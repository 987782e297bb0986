package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestAJumpOfTheClock: a daemon that starts where the wall clock is a month ahead of the
// time that has passed knows it, over its own restarts, until somebody says that the clock
// is right. The month is of a time namespace, in which the daemon before it ran: its
// progress was a month further, and the wall clock the same.
func TestAJumpOfTheClock(t *testing.T) {
	t.Parallel()
	const month = 30 * 24 * time.Hour
	in := start(t, "default_template: debian\n")
	t.Cleanup(func() { in.revive(t) })
	wantJump := func(want time.Duration) {
		t.Helper()
		now, err := in.Client.Clock(t.Context())
		if err != nil {
			t.Fatalf("%v\n%s", err, in.log())
		}
		if off := time.Duration(now.AheadSeconds)*time.Second - want; off.Abs() > time.Minute || now.Jumped != (want != 0) {
			t.Errorf("the clock is %+v, want a jump of %s", now, want)
		}
	}
	restart := func(wrapper ...string) {
		t.Helper()
		in.kill(t)
		until(t, "the daemon is gone", func() bool { // killed was its wrapper, and it is told of that
			_, err := in.Client.Version(t.Context())
			return err != nil
		})
		argv := slices.Concat(wrapper, []string{filepath.Join(binaries(repository(t)), "cofferdam"), "serve"})
		in.launchAs(t, argv)
		in.answers(t)
	}
	wantJump(0)
	restart("unshare", "--time", "--fork", "--kill-child", "--boottime", strconv.Itoa(int(month/time.Second)))
	wantJump(-month)
	if _, err := in.Client.AcceptClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantJump(0)
	for range 2 {
		restart()
		wantJump(month)
	}
	if before, err := in.Client.AcceptClock(t.Context()); err != nil || !before.Jumped {
		t.Fatal(before, err)
	}
	restart()
	wantJump(0)

	var said []string
	var last time.Time
	for text, err := range in.Client.Records(t.Context(), client.RecordFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		var r audit.Record
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if r.Time.Before(last) {
			t.Errorf("record %d is older than the one before it", r.Seq)
		}
		last = r.Time
		if r.Kind == audit.KindLog {
			said = append(said, string(r.Outcome)+" "+r.Detail["event"])
		}
	}
	t.Logf("on record: %q", said)
	if n := times(said, "alarm clock_jump"); n != 3 {
		t.Errorf("%d alarms are on record: %q", n, said)
	}
	if n := times(said, "finished clock_accepted"); n != 2 {
		t.Errorf("on record is %d times that the clock was accepted: %q", n, said)
	}
	verify := exec.Command(filepath.Join(binaries(repository(t)), "cofferdam"), "audit", "verify")
	verify.Env = in.environ()
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func times(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}
