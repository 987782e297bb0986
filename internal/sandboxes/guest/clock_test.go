package guest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// leaps makes the time of a clock able to leap, as that of a thawed sandbox does.
func leaps(c *clock) (leap func(time.Duration)) {
	var mu sync.Mutex
	var leaped time.Duration
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(leaped)
	}
	return func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		leaped += d
	}
}

// waited tells how long a wait of d takes while do is done at its beginning.
func waited(c *clock, d time.Duration, do func()) time.Duration {
	began := time.Now()
	done := make(chan error)
	go func() { done <- c.waitCounted(context.Background(), d) }()
	synctest.Wait()
	do()
	<-done
	return time.Since(began)
}

// The time in these tests is the bubble's own, so that it can be compared.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		leap := leaps(c)
		if got := waited(c, 10*time.Second, func() {}); got != 10*time.Second {
			t.Errorf("waited %v", got)
		}
		if got := waited(c, 70*time.Millisecond, func() {}); got != 70*time.Millisecond {
			t.Errorf("waited %v", got)
		}
		if got := waited(c, 10*time.Second, func() { leap(72 * time.Hour) }); got < 9*time.Second || got > 10*time.Second {
			t.Errorf("over a leap of days: %v", got)
		}
		if got := waited(c, time.Second, func() {
			c.setStopped(true)
			c.setStopped(true) // a state, not a count
			time.Sleep(time.Hour)
			leap(time.Hour)
			c.setStopped(false)
		}); got < time.Hour+time.Second || got > time.Hour+2*time.Second {
			t.Errorf("over an hour of standing still: %v", got)
		}
		leap(-time.Hour)
		if got := waited(c, time.Second, func() {}); got < time.Second || got > 2*time.Second {
			t.Errorf("after a leap back: %v", got)
		}
	})
}

func TestClockEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.waitCounted(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %v", err)
		}
		within, cancelWithin := c.withTimeout(t.Context(), time.Minute)
		<-within.Done()
		if cause := context.Cause(within); !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("the cause is %v", cause)
		}
		cancelWithin()
		within, cancelWithin = c.withTimeout(t.Context(), time.Minute)
		cancelWithin()
		if cause := context.Cause(within); !errors.Is(cause, context.Canceled) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

func TestLimit(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	lift := limitIO(ctx, a)
	for range 2 {
		if !lift() {
			t.Error("a limit was late that never came")
		}
	}
	lift = limitIO(ctx, a)
	cancel()
	if _, err := a.Read(make([]byte, 1)); !channel.IsTimeout(err) {
		t.Errorf("read past the limit: %v", err)
	}
	for range 2 {
		if lift() {
			t.Error("a limit that came was taken off in time")
		}
	}
}

// TestHoldStopsTheClockOfCommands: a command lives past its timeout while the
// host has stopped the clock, and not much longer.
func TestHoldStopsTheClockOfCommands(t *testing.T) {
	a := startAgent(t, nil)
	a.mustCall(channel.Call{Kind: channel.CallHold, Hold: &channel.Hold{Stopped: true}})
	held := a.start(channel.Exec{ID: "held", Argv: []string{"sh", "-c", "sleep 1.2; echo on; sleep 1000"}, Timeout: 400})
	held.until("on")
	a.mustCall(channel.Call{Kind: channel.CallHold, Hold: &channel.Hold{}})
	if exit := held.wait(); !exit.TimedOut {
		t.Errorf("after the hold: %+v", exit)
	}
	if exit := a.run(channel.Exec{Argv: []string{"sleep", "1000"}, Timeout: 100}).exit; !exit.TimedOut {
		t.Errorf("without a hold: %+v", exit)
	}
}

// TestALeapEndsNothing: what waits in the agent when a thaw makes the time leap
// goes on waiting: a command with a timeout, and a connection whose host has
// not answered.
func TestALeapEndsNothing(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	a := startAgent(t, func(open channel.Open, _ *channel.Conn) channel.Reply {
		close(asked)
		<-answer
		return channel.Reply{OK: true, Text: "an answer to " + string(open.Kind)}
	})
	clocks := []*clock{a.agent.clock, a.agent.paid}
	leap := []func(time.Duration){leaps(clocks[0]), leaps(clocks[1])}
	cmd := a.start(channel.Exec{ID: "c", Argv: []string{"sh", "-c", "echo up; read line; echo got $line"}, Stdin: true, Timeout: 60_000})
	cmd.until("up")
	text := make(chan string)
	go func() { text <- a.agent.why.textFor(t.Context(), questionWhy) }()
	<-asked
	for i, c := range clocks {
		leap[i](72 * time.Hour)
		_ = c.readTime() // it has seen the leap
	}
	close(answer)
	if got := <-text; got != "an answer to why" {
		t.Errorf("the question over a leap: %q", got)
	}
	cmd.send(channel.FrameStdin, []byte("word\n"))
	if exit := cmd.wait(); exit.TimedOut || cmd.stdout.String() != "up\ngot word\n" {
		t.Errorf("the command over a leap: %+v %q", exit, cmd.stdout.String())
	}
}

func TestResume(t *testing.T) {
	a := startAgent(t, nil)
	a.mustCall(channel.Call{Kind: channel.CallResume, Resume: &channel.Resume{Now: time.Now().UnixNano(), Seed: []byte("seed")}})
	for _, kind := range []channel.CallKind{channel.CallHold, channel.CallResume} {
		stream, reply := a.call(channel.Call{Kind: kind})
		_ = stream.Close()
		if reply.OK || reply.Error == "" {
			t.Errorf("%s without a body: %+v", kind, reply)
		}
	}
}
