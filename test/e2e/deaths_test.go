package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
)

// fewDeaths are the points of the normal run, one for each kind of thing that a daemon
// does.
func fewDeaths() []faultpoint.Point {
	return []faultpoint.Point{
		faultpoint.CreateLaunched, faultpoint.ExecStarted, faultpoint.FreezeWritten, faultpoint.DestroyGone,
		faultpoint.ForkRestored, faultpoint.RecoverAdopted,
	}
}

// TestDaemonDiesAnywhere: a daemon with real sandboxes is killed at a fault point, in
// the middle of what a client asked for. The next one has each sandbox or has taken it
// away: all who know of sandboxes know the same ones, commands run in those that run,
// those on disk resume with what they had in memory, and when all is destroyed nothing
// is left. A sandbox that has nothing to do with it runs through all of that, with its
// command. COFFERDAM_LONG takes all the points.
func TestDaemonDiesAnywhere(t *testing.T) {
	t.Parallel()
	points := fewDeaths()
	if os.Getenv("COFFERDAM_LONG") != "" {
		points = faultpoint.All()
	}
	in := start(t, "default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\n")
	t.Cleanup(func() { in.revive(t) }) // before it is stopped
	in.warmUp(t)
	w := in.witness(t)
	before := in.settled(t)
	for _, point := range points {
		t.Run(string(point), func(t *testing.T) {
			d := in.rehearse(t, point)
			in.crashAt(t, point, func(ctx context.Context) error { return d.act(ctx, in) })
			since := time.Now()
			in.launch(t)
			in.answers(t)
			all := in.wantAgreement(t)
			t.Logf("the next daemon has its sandboxes after %v", time.Since(since).Round(time.Millisecond))
			d.judge(t, all, w.sandbox.ID)
			in.wantUse(t, w.sandbox, "")
			d.goOn(t, in, w.sandbox.ID)
			in.clear(t, w.sandbox.ID)
			in.wantBack(t, before)
			in.wantOneEnd(t, w.sandbox.ID)
		})
		if t.Failed() {
			return // what is left of one would be found by all the others
		}
	}
	w.judge(t, in)
	in.clear(t)
	in.wantOneEnd(t)
	if all := in.wantAgreement(t); len(all) > 0 {
		t.Errorf("%v are there after all was destroyed", all)
	}
}

// revive has a daemon run where the last one died, so that sandboxes end with the test.
func (in *installation) revive(t *testing.T) {
	t.Helper()
	if in.Daemon.ProcessState == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestWait) // the test's own is over
	defer cancel()
	in.launch(t)
	if err := in.ready(ctx); err != nil {
		t.Errorf("no daemon comes up again: %v", err)
	}
}

// warmUp makes what is made once only.
func (in *installation) warmUp(t *testing.T) {
	t.Helper()
	sb := in.create("debian", nothingAllowed)
	in.wantUse(t, sb, "")
	_, err := in.Client.Pause(t.Context(), sb.ID)
	if err == nil {
		_, err = in.Client.Resume(t.Context(), sb.ID)
	}
	if err == nil {
		_, err = in.Client.MakeSnapshot(t.Context(), sb.ID, api.MakeSnapshot{})
	}
	if err == nil {
		_, err = in.Client.Fork(t.Context(), sb.ID, api.ForkSandbox{})
	}
	if err != nil {
		t.Fatal(err)
	}
	in.clear(t)
}

// wantUse runs a command in a sandbox, which finds the mark, if there is to be one.
func (in *installation) wantUse(t *testing.T, sb api.Sandbox, mark string) {
	t.Helper()
	argv := []string{"cat", "/dev/null"}
	if mark != "" {
		argv[1] = markFile
	}
	got, err := execute(t.Context(), in.Client, sb.ID, argv...)
	if err != nil || got.Exit.Code != 0 || got.Stdout != mark {
		t.Errorf("in %s %v ends with %+v, %v, and not with %q", sb.ID, argv, got, err, mark)
	}
}

// witness is a sandbox that has nothing to do with what is tried, and its command.
type witness struct {
	sandbox api.Sandbox
	command api.Command
}

// witness has a command that counts.
func (in *installation) witness(t *testing.T) witness {
	t.Helper()
	w := witness{sandbox: in.create("debian", nothingAllowed)}
	var err error
	w.command, err = in.Client.StartCommand(t.Context(), w.sandbox.ID, api.StartCommand{
		Argv: []string{"sh", "-c", "n=0; while :; do n=$((n+1)); echo $n; sleep 0.2; done"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// judge: the command has gone on, and nothing that it said was lost or came twice.
func (w witness) judge(t *testing.T, in *installation) {
	t.Helper()
	at, err := in.Client.Attach(t.Context(), w.sandbox.ID, w.command.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if err := at.Signal("KILL"); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for event, err := range at.Events() {
		if err != nil {
			t.Fatal(err)
		}
		said.Write(event.Stdout)
		if event.Gap > 0 {
			t.Errorf("%d bytes of its output are missing", event.Gap)
		}
	}
	lines := strings.Fields(said.String())
	for i, line := range lines {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("its line %d is %q", i+1, line)
		}
	}
	if len(lines) < 2 {
		t.Errorf("the command said only %q", said.String())
	}
	t.Logf("the witness counted to %d", len(lines))
}

// crashAt does something with a daemon that dies of it, by its own hand. A daemon that
// lives on has not come by the point.
func (in *installation) crashAt(t *testing.T, point faultpoint.Point, act func(context.Context) error) {
	t.Helper()
	in.kill(t)
	in.launch(t, faultpoint.Variable+"="+string(point))
	ended := make(chan error, 1)
	go func() { ended <- in.Daemon.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- act(ctx) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		in.Daemon.Process.Kill()
		<-ended
		t.Fatalf("the daemon did not come by %s; the client was told %v\n%s", point, <-done, in.log())
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the daemon ended with %v, and not at %s\n%s", err, point, in.log())
	}
	cancel()
	<-done // what the client was told of a daemon that died
}

// ready waits for a daemon that may die before it answers.
func (in *installation) ready(ctx context.Context) error {
	return poll(ctx, func() bool {
		_, err := in.Client.Version(ctx)
		return err == nil
	})
}

// others are the sandboxes that are neither the subject nor the witness.
func (d *operation) others(all []api.Sandbox, witness string) []api.Sandbox {
	return slices.DeleteFunc(slices.Clone(all), func(s api.Sandbox) bool { return s.ID == d.subject.ID || s.ID == witness })
}
