package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// TestASessionSeeksItsDaemon: a daemon that is gone, and back in less than three seconds, is
// found again; one that stays away longer is given up, and so are errors that are no absence.
func TestASessionSeeksItsDaemon(t *testing.T) {
	back, other := errors.New("it is back"), errors.New("another")
	for name, test := range map[string]struct {
		away    time.Duration
		missing error
		want    error
	}{
		"not away":          {0, client.ErrNoDaemon, back},
		"for a while":       {2 * time.Second, client.ErrNoDaemon, back},
		"nearly too long":   {2900 * time.Millisecond, fmt.Errorf("x: %w", client.ErrLost), back},
		"too long":          {3100 * time.Millisecond, client.ErrNoDaemon, client.ErrNoDaemon},
		"it says something": {time.Hour, other, other},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began := newSession(), time.Now()
				s.attach = func(context.Context, int64) (*client.Attachment, error) {
					if time.Since(began) < test.away {
						return nil, test.missing
					}
					return nil, back
				}
				if _, err := s.followCommand(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("%v, want %v", err, test.want)
				}
			})
		})
	}
}

// TestASilentCommand: what a command writes to stderr is its own. However long it says nothing, and
// whether or not there is a terminal, nobody speaks in its place: a program's errors are read by other
// programs, too (cofferdam run 2>errors).
func TestASilentCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, stderr bytes.Buffer
		ended := errors.New("it has ended")
		s := newSession()
		ours := ui.NewStderr(&stderr)
		s.out, s.err, s.say = &out, ours, ours.Say
		s.attach = func(context.Context, int64) (*client.Attachment, error) {
			time.Sleep(time.Hour)
			return nil, ended
		}
		if _, err := s.followCommand(t.Context()); !errors.Is(err, ended) {
			t.Error(err)
		}
		if out.Len()+stderr.Len() > 0 {
			t.Errorf("in an hour of silence: %q, %q", out.String(), stderr.String())
		}
	})
}
