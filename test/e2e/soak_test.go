package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// The numbers of a soak, unless the environment says others.
const (
	soakTime    = 20 * time.Minute
	soakers     = 4
	soakMost    = 3  // sandboxes of one worker
	soakSamples = 90 // of what the processes have
)

// TestSoak does things with sandboxes at random for twenty minutes. After a third of
// that the memory and the descriptors of daemon, keeper and gateway grow no more, and
// at the end nothing is left. It is there with COFFERDAM_LONG; COFFERDAM_SOAK is
// another duration, COFFERDAM_SEED another course of things.
func TestSoak(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for it: it takes 20 minutes")
	}
	length, seed := soakTime, uint64(time.Now().UnixNano())
	if text := os.Getenv("COFFERDAM_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("COFFERDAM_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("COFFERDAM_SEED=%d", seed)
	in := start(t, "default_template: debian\n")
	in.warmUp(t)
	before := in.settled(t)
	s := &soak{client: in.Client, did: map[string]int{}}
	over, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	group, ctx := errgroup.WithContext(t.Context())
	for n := range soakers {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		group.Go(func() error { return s.work(ctx, over, random) })
	}
	watched := in.watch(over, t, length/soakSamples)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("done: %v", s.did)
	for what := range soakOperations() {
		if s.did[what] == 0 {
			t.Errorf("in all the time there was no %s", what)
		}
	}
	watched.judge(t)
	in.clear(t)
	in.wantOneEnd(t)
	if all := in.wantAgreement(t); len(all) > 0 {
		t.Errorf("%v are left", all)
	}
	in.wantBack(t, before)
}

// soak is what its workers share.
type soak struct {
	client *client.Client

	mu  sync.Mutex // guards did
	did map[string]int
}

// soaker is one worker with what it has; only its goroutine touches it.
type soaker struct {
	*soak
	random    *rand.Rand
	live      []string // its sandboxes, all running
	snapshots []string
}

// soakOperations are what a worker can do, with how often it wants to.
func soakOperations() map[string]struct {
	weight int
	do     func(*soaker, context.Context) error
} {
	type one = struct {
		weight int
		do     func(*soaker, context.Context) error
	}
	return map[string]one{
		"create": {3, (*soaker).create}, "exec": {5, (*soaker).exec}, "files": {4, (*soaker).files}, "snapshot": {1, (*soaker).snapshot},
		"restore": {1, (*soaker).restore}, "fork": {1, (*soaker).fork}, "pause": {2, (*soaker).pause}, "kill": {3, (*soaker).kill},
	}
}

// work does things until the time is over.
func (s *soak) work(ctx, over context.Context, random *rand.Rand) error {
	w := &soaker{soak: s, random: random}
	all := soakOperations()
	var lots []string
	for _, what := range []string{"create", "exec", "files", "snapshot", "restore", "fork", "pause", "kill"} { // an order: a seed means one course
		for range all[what].weight {
			lots = append(lots, what)
		}
	}
	for over.Err() == nil && ctx.Err() == nil {
		what := lots[random.IntN(len(lots))]
		switch grows := what == "create" || what == "restore" || what == "fork"; {
		case len(w.live) == 0 && what != "restore":
			what = "create"
		case what == "restore" && len(w.snapshots) == 0:
			what = "create"
			if len(w.live) >= soakMost {
				what = "kill"
			}
		case grows && len(w.live) >= soakMost:
			what = "kill"
		}
		if err := all[what].do(w, ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		s.mu.Lock()
		s.did[what]++
		s.mu.Unlock()
	}
	return nil
}

func (w *soaker) any() string { return w.live[w.random.IntN(len(w.live))] }

func (w *soaker) create(ctx context.Context) error {
	sb, err := w.client.CreateSandbox(ctx, plain())
	if err == nil {
		w.live = append(w.live, sb.ID)
	}
	return err
}

func (w *soaker) exec(ctx context.Context) error {
	id, word := w.any(), strconv.Itoa(w.random.Int())
	got, err := execute(ctx, w.client, id, "sh", "-c", "hostname; echo "+word)
	if err == nil && (got.Exit.Code != 0 || got.Stdout != id+"\n"+word+"\n") {
		err = fmt.Errorf("in %s it printed %q and ended with %+v", id, got.Stdout, got.Exit)
	}
	return err
}

func (w *soaker) files(ctx context.Context) error {
	id, data := w.any(), make([]byte, 1+w.random.IntN(1<<20))
	for i := range data {
		data[i] = byte(w.random.Uint32())
	}
	file := client.File{Path: "soak/" + strconv.Itoa(w.random.IntN(10))}
	if _, err := w.client.WriteFile(ctx, id, file, bytes.NewReader(data)); err != nil {
		return err
	}
	content, err := w.client.ReadFile(ctx, id, file)
	if err != nil {
		return err
	}
	defer content.Close()
	got, err := io.ReadAll(content)
	if err == nil && !bytes.Equal(got, data) {
		err = fmt.Errorf("in %s the file %s came back with %d bytes, and had %d", id, file.Path, len(got), len(data))
	}
	return err
}

// snapshot makes one, and takes the oldest away when there are several.
func (w *soaker) snapshot(ctx context.Context) error {
	contents := []string{"memory", "files"}[w.random.IntN(2)]
	snapshot, err := w.client.MakeSnapshot(ctx, w.any(), api.MakeSnapshot{Contents: contents})
	if err != nil {
		return err
	}
	w.snapshots = append(w.snapshots, snapshot.ID)
	if len(w.snapshots) <= 2 {
		return nil
	}
	oldest := w.snapshots[0]
	w.snapshots = w.snapshots[1:]
	return w.client.RemoveSnapshot(ctx, oldest)
}

func (w *soaker) restore(ctx context.Context) error {
	sb, err := w.client.CreateSandbox(ctx, api.CreateSandbox{Snapshot: w.snapshots[w.random.IntN(len(w.snapshots))], Linger: true})
	if err == nil {
		w.live = append(w.live, sb.ID)
	}
	return err
}

func (w *soaker) fork(ctx context.Context) error {
	forks, err := w.client.Fork(ctx, w.any(), api.ForkSandbox{Count: 1 + w.random.IntN(2)})
	for _, f := range forks {
		if f.Error != nil {
			err = errors.Join(err, errors.New(f.Error.Detail))
			continue
		}
		w.live = append(w.live, f.Sandbox.ID)
	}
	return err
}

func (w *soaker) pause(ctx context.Context) error {
	id := w.any()
	sb, err := w.client.Pause(ctx, id)
	if err == nil && sb.State != "paused" {
		err = fmt.Errorf("%s is %s after it was paused", id, sb.State)
	}
	if err != nil {
		return err
	}
	if sb, err = w.client.Resume(ctx, id); err == nil && sb.State != "running" {
		err = fmt.Errorf("%s is %s after it was resumed", id, sb.State)
	}
	return err
}

func (w *soaker) kill(ctx context.Context) error {
	at := w.random.IntN(len(w.live))
	id := w.live[at]
	w.live = append(w.live[:at], w.live[at+1:]...)
	return w.client.DestroySandbox(ctx, id)
}
