// Package safego starts goroutines, and is the one place of the daemon, the keeper
// and the gateway that does: a panic in one of them ends that goroutine's work, and
// not the process with all of its sandboxes.
//
// A goroutine that panics is lost: it is counted, logged with its stack, and its deferred calls
// have run. One of those must tell whoever waits for it; where an answer is waited for, Try makes
// an error of the panic.
//
// An error that no recover can hold (one of the runtime's own, such as two writers of
// one map) ends the process still, and a lock that was held without a deferred unlock
// stays held.
package safego

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// lost counts the goroutines of this process that panicked.
var lost atomic.Int64 //nolint:gochecknoglobals // a count of the process's goroutines, which are the process's, too

// Lost returns how many goroutines of this process panicked.
func Lost() int64 { return lost.Load() }

// ErrLost is what Try makes of a panic.
var ErrLost = errors.New("something panicked; the log says where")

// Go does do in a goroutine of its own.
func Go(do func()) {
	go shielded(do)
}

// In is Go for one that a group waits for.
func In(group *sync.WaitGroup, do func()) {
	group.Go(func() { shielded(do) })
}

// After is time.AfterFunc.
func After(d time.Duration, do func()) *time.Timer {
	return time.AfterFunc(d, func() { shielded(do) })
}

// When is context.AfterFunc: stop takes it back, or says false if it has begun.
func When(ctx context.Context, do func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() { shielded(do) })
}

// Until is When for what uses things that are gone after the caller has returned:
// stop waits for a function that has begun. The function must not wait for the caller.
func Until(ctx context.Context, do func()) (stop func()) {
	done := make(chan struct{})
	take := context.AfterFunc(ctx, func() {
		defer close(done)
		shielded(do)
	})
	return sync.OnceFunc(func() {
		if !take() {
			<-done
		}
	})
}

// Try does do here and now; that it panicked is ErrLost.
func Try(do func() error) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			reportPanic(failure)
			err = ErrLost
		}
	}()
	return do()
}

// again is how long Stay waits before it calls a lost function again.
const again = time.Second

// Stay does here what goes on for as long as ctx does: one that is lost is done
// again after a pause.
func Stay(ctx context.Context, do func()) {
	for errors.Is(Try(func() error { do(); return nil }), ErrLost) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// shielded is the body of each goroutine.
func shielded(do func()) {
	_ = Try(func() error { do(); return nil }) // it is told already
}

// reportPanic counts and logs. It is called by the deferred function of the panic, so that
// the stack is the panic's.
func reportPanic(failure any) {
	lost.Add(1)
	slog.Default().Error("a goroutine panicked", "panic", fmt.Sprint(failure), "stack", string(debug.Stack()))
}
