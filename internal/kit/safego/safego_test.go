package safego_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// TestALostErrand: however one is started, its panic ends nothing but itself, and is
// counted and logged.
func TestALostErrand(t *testing.T) {
	var said bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	defer slog.SetDefault(before)
	for name, start := range map[string]func(t *testing.T, do func()){
		"Go": func(_ *testing.T, do func()) { safego.Go(do) },
		"In": func(_ *testing.T, do func()) {
			var group sync.WaitGroup
			safego.In(&group, do)
			group.Wait()
		},
		"After": func(_ *testing.T, do func()) { safego.After(0, do) },
		"When": func(t *testing.T, do func()) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			safego.When(ctx, do)
			cancel()
		},
		"Until": func(t *testing.T, do func()) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			stop := safego.Until(ctx, do)
			cancel()
			stop()
		},
		"Try": func(t *testing.T, do func()) {
			t.Helper()
			if err := safego.Try(func() error { do(); return nil }); !errors.Is(err, safego.ErrLost) {
				t.Errorf("Try says %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said.Reset()
				lost, deferred := safego.Lost(), false
				start(t, func() {
					defer func() { deferred = true }()
					panic("lost " + name)
				})
				time.Sleep(time.Millisecond)
				synctest.Wait()
				if !deferred || safego.Lost() != lost+1 {
					t.Errorf("deferred: %v; %d were lost", deferred, safego.Lost()-lost)
				}
				if text := said.String(); !strings.Contains(text, "lost "+name) || !strings.Contains(text, "TestALostErrand") {
					t.Errorf("the log says %q", text)
				}
			})
		})
	}
}

// TestUntilWaits: what was begun has ended when its stop returns; what was not, never
// begins.
func TestUntilWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		goOn, ended := make(chan struct{}), false
		stop := safego.Until(ctx, func() {
			<-goOn
			ended = true
		})
		cancel()
		synctest.Wait()
		stopped := make(chan bool)
		go func() {
			stop()
			stop()
			stopped <- ended
		}()
		synctest.Wait()
		close(goOn)
		if !<-stopped {
			t.Error("stop returned before the function")
		}
		ctx, cancel = context.WithCancel(t.Context())
		safego.Until(ctx, func() { t.Error("begun after it was taken back") })()
		cancel()
		synctest.Wait()
	})
}

// TestStay: what is lost is done again, until its time is over or it ends by itself.
func TestStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		times := 0
		safego.Stay(ctx, func() {
			if times++; times < 3 {
				panic("again")
			}
		})
		if times != 3 {
			t.Errorf("done %d times", times)
		}
		safego.Stay(ctx, func() {
			times++
			cancel()
			panic("for the last time")
		})
		if times != 4 {
			t.Errorf("done %d times, the last of them after its time", times)
		}
	})
}
