package door

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// tooLate bounds calls that must not wait for others: it is only there to end a test that has
// failed.
const tooLate = 30 * time.Second

func questions() (all []string) {
	for question := range reflect.TypeFor[Door]().Methods() {
		if question.Name != "Trust" { // which no sandbox asks
			all = append(all, question.Name)
		}
	}
	return all
}

// waitUntil waits until something is so.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	late := time.After(tooLate)
	for !is() {
		select {
		case <-late:
			t.Fatal(what)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestNoSandboxKeepsAnotherFromAnswers: calls of each kind of some sandboxes are never
// answered, by a source, a person or whatever takes its time, and there are as many of them as
// the sandboxes like. A neighbour is answered.
func TestNoSandboxKeepsAnotherFromAnswers(t *testing.T) {
	for _, attackers := range []int{1, 6} {
		t.Run(fmt.Sprint(attackers), func(t *testing.T) {
			d := &plainDoor{hung: func(sandbox string) bool { return strings.HasPrefix(sandbox, "attacker") }, freed: make(chan struct{})}
			c, _ := serve(t, d)
			ctx, end := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			defer calls.Wait()
			defer close(d.freed)
			defer end()
			var crowded sync.Map // by kind of question
			for i := range attackers {
				for _, question := range questions() {
					for range 360 / attackers {
						calls.Go(func() {
							if err := askFrom(ctx, c, question, fmt.Sprint("attacker", i)); err != nil && ctx.Err() == nil {
								crowded.Store(question, err)
							}
						})
					}
				}
			}
			var most int64
			for _, shares := range c.shares.classes {
				l := shares.Limits()
				most += int64(max(min(l.All, attackers*l.Each), attackers*l.Sure))
			}
			waitUntil(t, "the attackers' calls are not under way", func() bool { return d.waiting.Load() >= most })

			within, stop := context.WithTimeout(t.Context(), tooLate)
			defer stop()
			for _, question := range questions() {
				if err := askFrom(within, c, question, "neighbour"); err != nil {
					t.Errorf("%s of the neighbour: %v", question, err)
				}
			}
			crowded.Range(func(question, err any) bool {
				if !errors.Is(err.(error), fault.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "let some of its requests end first") {
					t.Errorf("%s of an attacker: %v", question, err)
				}
				return true
			})
		})
	}
}

// TestWhatConnectionsStandOnWaitsForNothing: whatever else a sandbox asks and has not been
// answered, it is told at once which of its connections may go on, and what happened is put on
// record.
func TestWhatConnectionsStandOnWaitsForNothing(t *testing.T) {
	d := &plainDoor{}
	c, _ := serve(t, d)
	for _, one := range []class{classQuestion, classSecret, classWait} {
		for range c.shares.classes[one].Limits().Each {
			leave, err := c.shares.takeTurn(t.Context(), "sb1", one)
			must(t, err)
			t.Cleanup(leave)
		}
	}
	within, stop := context.WithTimeout(t.Context(), tooLate)
	defer stop()
	for _, question := range []string{"Standing", "Leaked", "HostRefused", "Failed", "Disconnected", "Requested", "FoundInRequest"} {
		must(t, askFrom(within, c, question, "sb1"))
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := askFrom(gone, c, "Secrets", "sb1"); !errors.Is(err, context.Canceled) { // the control
		t.Errorf("a call past the sandbox's share: %v", err)
	}
}

// large is an ask of somewhat more than n bytes.
func large(sandbox string, n int) AwaitAsk {
	return AwaitAsk{FileAsk: FileAsk{Sandbox: sandbox}, Bytes: Bytes{Paths: slices.Repeat([]string{strings.Repeat("x", 1<<10)}, n>>10)}}
}

func serveOf(ask AwaitAsk) ServeAsk { return ServeAsk{FileAsk: ask.FileAsk, Bytes: ask.Bytes} }

// TestLargeQuestionsThatWaitKeepNoOthersWaiting: more large questions than are read at a time
// wait for a person, and other large ones are answered.
func TestLargeQuestionsThatWaitKeepNoOthersWaiting(t *testing.T) {
	d := &plainDoor{hung: func(sandbox string) bool { return sandbox == "attacker" }, freed: make(chan struct{})}
	c, _ := serve(t, d)
	ctx, end := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer close(d.freed)
	defer end()
	const many = 20
	for range many {
		calls.Go(func() { _, _ = c.Await(ctx, large("attacker", 2*smallMessage)) })
		calls.Go(func() { _, _ = c.Serve(ctx, serveOf(large("attacker", 2*smallMessage))) })
	}
	waitUntil(t, "large questions wait for one another", func() bool { return d.waiting.Load() == 2*many })
	within, stop := context.WithTimeout(t.Context(), tooLate)
	defer stop()
	for range many {
		_, err := c.Await(within, large("neighbour", 2*smallMessage))
		must(t, err)
		_, err = c.Serve(within, serveOf(large("neighbour", 2*smallMessage)))
		must(t, err)
	}
}

// TestWhatWaitsInMemoryIsBounded: a sandbox has so many bytes of large questions under way, and
// no other has fewer for it.
func TestWhatWaitsInMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares()
		const each = 4 << 20
		var first func()
		for range heldBytes / each {
			release, err := s.makeRoom(t.Context(), "sb1", classWait, each)
			must(t, err)
			first = release
		}
		_, err := s.makeRoom(t.Context(), "sb1", classWait, each) // when messageTime is over
		if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "have somebody answer") {
			t.Errorf("one too many: %v", err)
		}
		for _, other := range []struct {
			sandbox string
			class   class
			bytes   int
		}{{"sb2", classWait, each}, {"sb1", classQuestion, each}, {"sb1", classWait, smallMessage}, {"sb3", classQuestion, maxMessage + 1}} {
			release, err := s.makeRoom(t.Context(), other.sandbox, other.class, other.bytes)
			must(t, err)
			release()
		}
		first()
		release, err := s.makeRoom(t.Context(), "sb1", classWait, each)
		must(t, err)
		release()
	})
}

// TestADaemonBoundsLargeQuestionsItself: where as many large questions wait for people as may, one
// more is answered that there are too many. Others, large or small, are answered as ever. Large ones
// that end by themselves wait for each other.
func TestADaemonBoundsLargeQuestionsItself(t *testing.T) {
	s := newServer(&plainDoor{})
	if !s.held.TryAcquire(maxHeld) {
		t.Fatal("nothing is under way, and there is no room")
	}
	daemon, gateway := connect(t)
	c := NewClient(gateway)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.serveConn(t.Context(), daemon) })
	defer serving.Wait()
	defer c.Close()
	if _, err := c.Await(t.Context(), large("sb1", 2*smallMessage)); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "large questions") {
		t.Errorf("one too many: %v", err)
	}
	for _, bytes := range []int{0, 2 * smallMessage} {
		if _, err := c.Serve(t.Context(), serveOf(large("sb1", bytes))); err != nil {
			t.Errorf("one of %d bytes that waits for nobody: %v", bytes, err)
		}
	}
	s.held.Release(maxHeld)
	if _, err := c.Await(t.Context(), large("sb1", 2*smallMessage)); err != nil {
		t.Errorf("a large one with room: %v", err)
	}
	must(t, s.held.Acquire(t.Context(), maxHeld)) // when what was answered has given back its room
	must(t, s.passing.Acquire(t.Context(), maxPassing))
	answered := make(chan error, 1)
	go func() {
		_, err := c.Serve(t.Context(), serveOf(large("sb1", 2*smallMessage)))
		answered <- err
	}()
	if _, err := c.Serve(t.Context(), ServeAsk{FileAsk: FileAsk{Sandbox: "sb1"}}); err != nil {
		t.Errorf("a small one: %v", err)
	}
	s.passing.Release(maxPassing)
	if err := <-answered; err != nil {
		t.Errorf("a large one that had to wait: %v", err)
	}
}

// TestNoClientChoosesWhatIsOnRecord: a client that goes while the daemon answers, or before it is
// asked, ends no question of which something may come on record: it is answered. A call that waits
// for others ends with its client.
func TestNoClientChoosesWhatIsOnRecord(t *testing.T) {
	waits := []string{"Await", "AwaitHost", "AwaitPush", "Build", "CallTool", "Secrets", "Standing"}
	for _, question := range questions() {
		t.Run(question, func(t *testing.T) {
			d := &plainDoor{}
			begun, goOn := make(chan context.Context), make(chan struct{})
			var givenUp atomic.Bool // when its record would be written
			d.each = func(ctx context.Context) {
				begun <- ctx
				<-goOn
				givenUp.Store(ctx.Err() != nil)
			}
			c, _ := serve(t, d)
			ctx, gone := context.WithCancel(t.Context())
			answered := make(chan error, 1)
			var call sync.WaitGroup
			defer call.Wait()
			call.Go(func() { answered <- askFrom(ctx, c, question, "sb1") })
			daemons := <-begun
			gone()
			if slices.Contains(waits, question) {
				if err := <-answered; !errors.Is(err, context.Canceled) {
					t.Errorf("its client has gone, and it ends with %v", err)
				}
				<-daemons.Done()
				close(goOn)
				return
			}
			close(goOn)
			if err := <-answered; err != nil || givenUp.Load() {
				t.Errorf("its client has gone, and it is answered %v", err)
			}
			before := d.asked.Load()
			call.Go(func() { <-begun })
			if err := askFrom(ctx, c, question, "sb1"); err != nil || d.asked.Load() != before+1 {
				t.Errorf("its client had gone before, and it is answered %v", err)
			}
		})
	}
}
