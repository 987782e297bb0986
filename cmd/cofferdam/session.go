package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// How hard a lost connection is sought again: at once, and then after pauses that grow to
// twice as much each time. The Python package's are the same.
const (
	reattachTries = 5
	reattachPause = 200 * time.Millisecond
)

// session carries one command's output, input and signals, over as many
// attachments as it takes: the daemon may be killed and come back meanwhile.
type session struct {
	attach func(ctx context.Context, offset int64) (*client.Attachment, error)
	out    io.Writer // the command's stdout
	err    io.Writer // the command's stderr
	say    func(format string, args ...any)
	beside func(ctx context.Context, signal string) error // signals the command past its input; nil: there is no such way
	from   int64                                          // the offset to begin with
	// lossless: output that was not kept is an error, not a remark.
	lossless bool

	mu         sync.Mutex // guards what follows
	link       *client.Attachment
	linked     chan struct{} // closed when link is set
	wasLinked  bool          // link has been set
	inputEnded bool
}

func newSession() *session { return &session{linked: make(chan struct{})} }

// followCommand returns how the command ended. It ends early with ctx, with the
// cause.
func (s *session) followCommand(ctx context.Context) (api.Exit, error) {
	offset := s.from
	for tries := 0; ; tries++ {
		if tries > 1 {
			if err := pauseFor(ctx, reattachPause<<(tries-2)); err != nil {
				return api.Exit{}, err
			}
		}
		link, err := s.attach(ctx, offset)
		if err == nil {
			if tries > 0 {
				s.say("the daemon was gone and is back; the command went on meanwhile")
			}
			var exit *api.Exit
			exit, err = s.drainEvents(link)
			if exit != nil {
				return *exit, nil
			}
			if link.Offset() > offset {
				offset, tries = link.Offset(), 0
			}
		}
		switch {
		case ctx.Err() != nil:
			return api.Exit{}, context.Cause(ctx)
		case client.StatusOf(err) != 0, !errors.Is(err, client.ErrLost) && !errors.Is(err, client.ErrNoDaemon):
			return api.Exit{}, err
		case tries >= reattachTries:
			return api.Exit{}, fmt.Errorf("gave up after %d tries: %w", tries, err)
		}
	}
}

// drainEvents passes an attachment's events on until its end; the exit is nil if it
// ended before the command.
func (s *session) drainEvents(link *client.Attachment) (*api.Exit, error) {
	s.setLink(link)
	defer func() {
		s.unsetLink(link)
		_ = link.Close() // nothing of value is in it any more
	}()
	for event, err := range link.Events() {
		switch {
		case err != nil:
			return nil, err
		case event.Exit != nil:
			return event.Exit, nil
		case event.Gap > 0 && s.lossless:
			return nil, fault.New(fault.ErrUnavailable, "%d bytes of the command's output were not kept", event.Gap)
		case event.Gap > 0:
			s.say("%d bytes of the command's output were not kept and are missing here", event.Gap)
		case event.Stdout != nil:
			if _, err := s.out.Write(event.Stdout); err != nil {
				return nil, &outputError{stream: "stdout", err: err}
			}
		case event.Stderr != nil:
			if _, err := s.err.Write(event.Stderr); err != nil {
				return nil, &outputError{stream: "stderr", err: err}
			}
		}
	}
	return nil, client.ErrLost
}

// outputError: the command's output can't be written any more.
type outputError struct {
	stream string
	err    error
}

func (e *outputError) Error() string {
	return fmt.Sprintf("the command's %s can't be written: %s", e.stream, e.err)
}

func (e *outputError) Unwrap() error { return e.err }

func (s *session) setLink(link *client.Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.wasLinked = link, true
	close(s.linked)
	s.linked = make(chan struct{})
	if s.inputEnded {
		// The end of input may have been lost with the last attachment, and
		// the command would wait for it for ever. Twice does no harm.
		go func() { _ = link.CloseInput() }()
	}
}

// unsetLink takes an attachment out of use. It stays open for its reader: what the
// other side said before it went is still to be had.
func (s *session) unsetLink(link *client.Attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == link {
		s.link = nil
	}
}

// sendThroughLink does something with the attachment, and again with the next one if this
// one is lost meanwhile.
func (s *session) sendThroughLink(ctx context.Context, do func(*client.Attachment) error) error {
	for {
		s.mu.Lock()
		link, linked := s.link, s.linked
		s.mu.Unlock()
		if link != nil {
			if err := do(link); err == nil {
				return nil
			}
			s.unsetLink(link)
		}
		select {
		case <-linked:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendSignal signals the command, once there is an attachment to it. It goes beside the
// attachments, which may be full of input that the command does not read; a daemon that does
// not take it so, because it is older or the sandbox is frozen, gets it by one.
func (s *session) sendSignal(ctx context.Context, name string) {
	// beside is set before the first attachment.
	if s.awaitLink(ctx) == nil && s.beside != nil && s.beside(ctx, name) == nil {
		return
	}
	_ = s.sendThroughLink(ctx, func(link *client.Attachment) error { return link.Signal(name) }) // fails only with the session
}

// awaitLink returns when there is, or has been, an attachment.
func (s *session) awaitLink(ctx context.Context) error {
	s.mu.Lock()
	linked, was := s.linked, s.wasLinked
	s.mu.Unlock()
	if was {
		return nil
	}
	select {
	case <-linked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pumpInput passes input on until its end; take sees all of it first, and returns what
// is to be passed.
func (s *session) pumpInput(ctx context.Context, in io.Reader, take func([]byte) []byte) {
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			rest := take(buf[:n])
			if s.sendThroughLink(ctx, func(link *client.Attachment) error {
				sent, err := link.Write(rest)
				rest = rest[sent:]
				return err
			}) != nil {
				return
			}
		}
		if err != nil {
			s.mu.Lock()
			s.inputEnded = true
			s.mu.Unlock()
			_ = s.sendThroughLink(ctx, (*client.Attachment).CloseInput) // fails only with the session
			return
		}
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
