package door

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestCallsWithoutATurnAreJudged: the daemon hears of what may wait for a person or a tool, although whoever asks goes
// before there is a turn for it, or there is none; and it hears that nobody waits. The controls are calls that end with
// their askers, and may not have come.
func TestCallsWithoutATurnAreJudged(t *testing.T) {
	for _, question := range []string{"Await", "AwaitHost", "AwaitPush", "Build", "CallTool"} {
		t.Run(question, func(t *testing.T) {
			var mu sync.Mutex
			clients, lasting := 0, 0 // that had gone while they were judged, and what they asked was judged on
			d := &plainDoor{hung: func(sandbox string) bool { return sandbox == "sb1" }, freed: make(chan struct{})}
			d.each = func(ctx context.Context) {
				judged, done := Lasting(ctx)
				defer done()
				select {
				case <-ClientOf(judged).Done():
				case <-d.freed:
				}
				mu.Lock()
				defer mu.Unlock()
				clients++
				if judged.Err() == nil {
					lasting++
				}
			}
			c, _ := serve(t, d)
			var calls sync.WaitGroup
			defer calls.Wait()
			defer close(d.freed)
			for range c.shares.classes[classWait].Limits().Each {
				leave, err := c.shares.takeTurn(t.Context(), "sb1", classWait)
				must(t, err)
				t.Cleanup(leave)
			}
			gone, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			calls.Go(func() { ended <- askFrom(gone, c, question, "sb1") }) // waits for its turn
			waitUntil(t, "it does not wait", func() bool { return c.shares.classes[classWait].Waiting() == 1 })
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if err := askFrom(gone, c, question, "sb1"); !errors.Is(err, context.Canceled) { // it had gone before
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if d.asked.Load() != 2 || clients != 2 || lasting != 2 {
				t.Errorf("the daemon was asked %d times, %d times for one who had gone, of which %d were judged on", d.asked.Load(), clients, lasting)
			}
		})
	}
	d := &plainDoor{}
	c, _ := serve(t, d)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := askFrom(gone, c, "Secrets", "sb1"); !errors.Is(err, context.Canceled) || d.asked.Load() != 0 {
		t.Errorf("INCONCLUSIVE: %v, asked %d times", err, d.asked.Load())
	}
}

// TestWhoGoesHasItsTurnUntilItIsJudged: or a sandbox that asks and goes had any number of questions judged at a time, and
// left the others no room. The controls are those that have been judged.
func TestWhoGoesHasItsTurnUntilItIsJudged(t *testing.T) {
	const most = 3
	gone := make(chan struct{}, most)
	d := &plainDoor{freed: make(chan struct{})}
	d.each = func(ctx context.Context) {
		judged, done := Lasting(ctx)
		defer done()
		<-ClientOf(judged).Done()
		gone <- struct{}{}
		select {
		case <-judged.Done():
		case <-d.freed:
		}
	}
	c, _ := serve(t, d)
	ended := make(chan error, 1)
	for i := range most {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- askFrom(ctx, c, "Await", "sb1") }()
		waitUntil(t, "it is not asked", func() bool { return d.asked.Load() == int64(i+1) })
		cancel()
		<-gone
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if held := c.shares.classes[classWait].Held(); held != most {
		t.Errorf("%d questions are judged, and %d turns are taken", most, held)
	}
	close(d.freed)
	waitUntil(t, "turns are taken for ever", func() bool { return c.shares.classes[classWait].Held() == 0 })
}

// TestASandboxThatAsksTooMuchIsOnRecord, as what it asks then is refused and not judged.
func TestASandboxThatAsksTooMuchIsOnRecord(t *testing.T) {
	d := &plainDoor{}
	c, _ := serve(t, d)
	l := c.shares.classes[classQuestion].Limits()
	for range l.Each {
		leave, err := c.shares.takeTurn(t.Context(), "sb1", classQuestion)
		must(t, err)
		t.Cleanup(leave)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var line sync.WaitGroup
	defer line.Wait()
	defer cancel()
	for range l.Line {
		line.Go(func() {
			if _, err := c.shares.takeTurn(ctx, "sb1", classQuestion); err == nil {
				t.Error("it has a turn")
			}
		})
	}
	waitUntil(t, "the line is not full", func() bool { return c.shares.classes[classQuestion].Waiting() == l.Line })
	if err := askFrom(t.Context(), c, "Name", "sb1"); !errors.Is(err, fault.ErrUnavailable) || d.asked.Load() != 1 {
		t.Errorf("%v, and the daemon was told of %d", err, d.asked.Load())
	}
}
