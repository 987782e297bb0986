package sandbox_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// roleDaemon is that of a process which is a daemon and does everything that has
// fault points, until it meets the one that it is to die at.
const roleDaemon = "sandbox-daemon"

// notHere are the points of what this engine can't do; snapshots have tests of their
// own.
func notHere(p faultpoint.Point) bool {
	return strings.HasPrefix(string(p), "snapshot.") || strings.HasPrefix(string(p), "fork.") || strings.HasPrefix(string(p), "restore.")
}

// playDaemon takes over what lives, and leads one sandbox through its whole life. It
// says on its output what its client has been told.
func playDaemon(text string, way life) {
	err := func() error {
		var w world
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			return err
		}
		ctx := context.Background()
		d, err := w.start(ctx)
		if err != nil {
			return err
		}
		return d.wholeLife(ctx, way, func(what, id string) { fmt.Println(what, id) })
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1) // the point was not met
}

// life is a way to pause a sandbox and to resume it.
type life struct {
	pause  func(d *daemon, ctx context.Context, id string) error
	resume func(d *daemon, ctx context.Context, id string) (bool, error)
}

// livesByRole are the ways by the roles that have them.
func livesByRole() map[string]life {
	return map[string]life{
		roleDaemon:  {(*daemon).Pause, (*daemon).Resume},
		roleOfFiles: {(*daemon).PauseFiles, (*daemon).Resume},
		roleAnew:    {(*daemon).Pause, (*daemon).ResumeFiles},
	}
}

func (d *daemon) wholeLife(ctx context.Context, way life, say func(what, id string)) error {
	p, err := policy.Parse("test", []byte(document))
	if err != nil {
		return err
	}
	s, err := d.Create(ctx, sandbox.Request{Policy: p, PolicyText: []byte(document), Labels: map[string]string{"a": "b"}, Env: map[string]string{"GIVEN": "word"}, IdempotencyKey: "one"})
	if err != nil {
		return err
	}
	id := s.Info().ID
	say("created", id)
	if err := d.SetLifetime(ctx, id, sandbox.Lifetime{TTL: time.Hour}); err != nil {
		return err
	}
	say("extended", id)
	if _, err := d.Start(ctx, id, sandbox.Command{Argv: []string{"/bin/true"}}); err != nil {
		return err
	}
	if err := d.Settle(ctx, s.Info().Run); err != nil {
		return err
	}
	for running := true; running; { // its end is on record
		all, err := d.Commands(ctx, id)
		if err != nil {
			return err
		}
		running = slices.ContainsFunc(all, func(c keeper.Command) bool { return c.Exit == nil })
		time.Sleep(time.Millisecond)
	}
	if err := d.Settle(ctx, s.Info().Run); err != nil {
		return err
	}
	if err := way.pause(d, ctx, id); err != nil {
		return err
	}
	say("paused", id)
	if _, err := way.resume(d, ctx, id); err != nil {
		return err
	}
	say("resumed", id)
	if err := d.Destroy(ctx, id); err != nil {
		return err
	}
	say("destroyed", id)
	return errors.New("the point was not met")
}

// crashAt runs a daemon that dies at a point, and returns what its client was told.
func (w *world) crashAt(t *testing.T, point faultpoint.Point) (answers map[string]string) {
	t.Helper()
	return w.crashAs(t, roleDaemon, point)
}

// crashAs does what crashAt does, for a daemon of some role.
func (w *world) crashAs(t *testing.T, role string, point faultpoint.Point) (answers map[string]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], role, w.encode(t))
	cmd.Env = append(os.Environ(), faultpoint.Variable+"="+string(point))
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers = map[string]string{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		what, id, _ := strings.Cut(lines.Text(), " ")
		answers[what] = id
	}
	err = cmd.Wait()
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it did not die at %s: %v\n%s", point, err, complaint.String())
	}
	return answers
}

// TestKilledAnywhere: at every fault point the daemon is killed. The next one finds
// every sandbox that a client was told of, or takes away what nobody was told of;
// nothing is there twice, nothing is left, and what it says is what there is.
func TestKilledAnywhere(t *testing.T) {
	for _, point := range faultpoint.All() {
		if notHere(point) || point == faultpoint.ResumeForFiles { // which has a test of its own
			continue
		}
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if strings.HasPrefix(string(point), "recover.") { // something must be there
				w.crashAt(t, faultpoint.PauseDone)
			}
			answers := w.crashAt(t, point)
			d := w.daemon(t)
			if strings.HasPrefix(string(point), "recover.") {
				if len(d.List()) != 1 {
					t.Errorf("%d sandboxes live", len(d.List()))
				}
			} else {
				d.judge(t, point, answers)
			}
			for _, s := range d.List() { // whatever it is, it can be gone on with
				d.goOn(t, s)
			}
			d.nothingLeft(t)
			d.wantOneEnd(t)
		})
	}
}

// judge compares what lives after a crash with what the client knows.
func (d *daemon) judge(t *testing.T, point faultpoint.Point, answers map[string]string) {
	t.Helper()
	id, known := answers["created"]
	var live []string
	for _, s := range d.List() {
		live = append(live, s.Info().ID)
		if s.Info().Labels["a"] != "b" {
			t.Errorf("its labels are %v", s.Info().Labels)
		}
	}
	d.wantOnly(t, live...)
	switch {
	case len(live) > 1:
		t.Fatalf("%v live", live)
	case !known && point != faultpoint.CreateRunning && len(live) > 0:
		t.Errorf("%v lives, and nobody was told of it", live)
	case known && answers["destroyed"] == "" && !strings.HasPrefix(string(point), "destroy.") && !slices.Equal(live, []string{id}):
		t.Errorf("%v live, and the client has %s", live, id)
	case strings.HasPrefix(string(point), "destroy.") && len(live) > 0:
		t.Errorf("%v lives, and was being destroyed", live)
	}
	if len(live) == 0 {
		return
	}
	s, err := d.Get(live[0])
	if err != nil {
		t.Fatal(err)
	}
	state, _ := s.State()
	if paused := answers["paused"] != "" && answers["resumed"] == ""; paused && !strings.HasPrefix(string(point), "thaw.") && point != faultpoint.ResumeDone && state != sandbox.Paused {
		t.Errorf("it is %s, and the client paused it", state)
	}
	if answers["extended"] != "" && (s.Ends().IsZero() || time.Until(s.Ends()) > time.Hour) {
		t.Errorf("it ends at %s", s.Ends())
	}
	if !slices.Contains(d.records(t, live[0]), audit.Adopted) {
		t.Errorf("its records are %v", d.records(t, live[0]))
	}
}

// goOn resumes a sandbox if it is paused, runs a command in it and takes it away.
func (d *daemon) goOn(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	ctx, id := t.Context(), s.Info().ID
	again, err := d.Create(ctx, ask(t, sandbox.Request{Labels: map[string]string{"a": "b"}, Env: map[string]string{"GIVEN": "word"}, IdempotencyKey: "one"}))
	if again != s && !errors.Is(err, fault.ErrConflict) { // the request was another user's
		t.Errorf("the same request makes %v, %v", again, err)
	}
	if _, err := d.Resume(ctx, id); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, sandbox.Running)
	cmd, err := d.Start(ctx, id, sandbox.Command{Argv: []string{"/bin/sh", "-c", `[ "$GIVEN $COFFERDAM_RUN" = "word ` + s.Info().Run + `" ]`}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the command ends", func() bool {
		all, err := d.Commands(ctx, id)
		at := slices.IndexFunc(all, func(c keeper.Command) bool { return c.ID == cmd.ID })
		if err != nil || at < 0 || all[at].Exit == nil {
			return false
		}
		if all[at].Exit.Code != 0 {
			t.Errorf("the command ended with %+v", all[at].Exit)
		}
		return true
	})
	if err := d.Destroy(ctx, id); err != nil {
		t.Fatal(err)
	}
}

// wantOneEnd: each sandbox was destroyed once, in the journal and on record.
func (d *daemon) wantOneEnd(t *testing.T) {
	t.Helper()
	for id, way := range d.events(t) {
		ends := 0
		for _, step := range way {
			if strings.HasSuffix(step, ">destroyed") {
				ends++
			}
		}
		if ends != 1 || way[0] != ">creating" {
			t.Errorf("the way of %s was %v", id, way)
		}
		starts, finishes := 0, 0
		for _, outcome := range d.records(t, id) {
			switch outcome { //nolint:exhaustive // its two ends
			case audit.Started:
				starts++
			case audit.Finished:
				finishes++
			}
		}
		if starts != finishes || starts > 1 {
			t.Errorf("%s was started %d times and ended %d times on record", id, starts, finishes)
		}
	}
}
