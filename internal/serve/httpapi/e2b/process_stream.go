package e2b

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// feed sends the messages of a stream until its end. errBroken: the sandbox is
// gone, and the connection is to break.
type feed func(ctx context.Context, s *connectStream) error

// errBroken: there is no end to tell of.
var errBroken = errors.New("the sandbox ended")

// beginStream begins the call of a request for a stream, in the codec that it asks for. served is false where the request was
// none of this protocol, and has its answer; err is for the stream's own end.
func (d *Data) beginStream(w http.ResponseWriter, r *http.Request) (c *call, served bool, err error) {
	c = callOf(r)
	inProto, err := checkStream(r)
	if inProto {
		c.codec = d.codecs[r.URL.Path]
	}
	if media, ok := errors.AsType[*unsupportedMedia](err); ok {
		http.Error(w, media.Error(), http.StatusUnsupportedMediaType)
		return c, false, nil
	}
	return c, true, err
}

// streaming serves a server-streaming call. When the sandbox is taken away the
// connection breaks in the middle: that is what clients know it by.
func (d *Data) streaming(open func(http.ResponseWriter, *call) (feed, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, served, err := d.beginStream(w, r)
		if !served {
			return
		}
		var run feed
		if err == nil {
			run, err = open(w, c)
			backend.Release(r.Context()) // of the message nothing is kept
		}
		if err != nil && d.isGone(c.id) {
			writeGone(w, d, c.id)
			return
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		safego.Go(func() { // ends with the call
			if d.awaitGone(ctx, c) {
				cancel(errBroken)
			}
		})
		s := openStream(ctx, w, c.codec)
		defer s.closeStream()
		if err == nil {
			err = run(ctx, s)
		}
		switch {
		case errors.Is(err, errBroken), errors.Is(context.Cause(ctx), errBroken):
			panic(http.ErrAbortHandler) // net/http's way to break a connection
		case errors.Is(context.Cause(r.Context()), token.ErrOver):
			s.endStream(d.explainError(c, errKeyOver()))
		case r.Context().Err() != nil: // nobody is there to be told
		case err != nil:
			s.endStream(d.explainError(c, err))
		default:
			s.endStream(nil)
		}
	}
}

// awaitGone returns when the sandbox is taken away or paused, or ctx ends.
func (d *Data) awaitGone(ctx context.Context, c *call) bool {
	for {
		changed := c.box.Waits().Changed
		if d.isGone(c.id) {
			return true
		}
		select {
		case <-changed:
		case <-c.box.Gone():
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// follow is how a command is to be followed.
type follow struct {
	timeout time.Duration // of the stream; 0: none
	kills   bool          // the command's own timeout is the same
	pid     int           // told at once; 0: when the guest says it
	offset  int64
}

// commandView is one client's view of a command.
type commandView struct {
	follow
	d       *Data
	c       *call
	what    launch
	raw     net.Conn
	conn    *channel.Conn
	started bool // that it has started
	pulse   time.Duration
}

// followCommand attaches to a command and returns the feed of its events.
func (d *Data) followCommand(c *call, command keeper.Command, what launch, how follow) (feed, error) {
	pulse, err := pulseOf(c.Request)
	if err != nil {
		return nil, err
	}
	raw, err := d.cfg.Sandboxes.Attach(c.Context(), c.id, command.ID, how.offset)
	if err != nil {
		return nil, err
	}
	o := &commandView{follow: how, d: d, c: c, what: what, raw: raw, conn: channel.NewConn(raw), pulse: pulse}
	return o.runOutput, nil
}

// pulseOf is how often a silent stream tells that it is there.
func pulseOf(r *http.Request) (time.Duration, error) {
	text := r.Header.Get("Keepalive-Ping-Interval")
	if text == "" {
		return backend.Idle, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || seconds > 3600 {
		return 0, refuseWith(codeInvalid, "Keepalive-Ping-Interval %.20q is not a number of seconds from 1 to 3600", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// startTimeout is how long a stream waits for its first event before a hold ends
// it: with the first event clients have the pid, and can come back.
const startTimeout = 2 * time.Second

// runOutput sends events until the command ends, the time is over, or the sandbox waits
// for a person. A client that does not read holds the command back, as a full pipe
// does.
func (o *commandView) runOutput(ctx context.Context, s *connectStream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer o.raw.Close()
	frames := readFrames(ctx, o.conn)
	pulse := time.NewTicker(o.pulse)
	defer pulse.Stop()
	nearly, over := o.timers()
	hopeless := time.After(startTimeout) // a guest that is being frozen may not tell any more
	gaveUp := false
	if o.pid != 0 {
		if err := o.sendStart(s, o.pid); err != nil {
			return err
		}
	}
	for {
		waits := o.c.box.Waits()
		if err := heldError(waits); err != nil && (o.started || gaveUp) {
			return err
		}
		select {
		case f := <-frames.next:
			if done, err := o.takeFrame(ctx, s, f); done || err != nil {
				return err
			}
			frames.taken <- struct{}{}
			pulse.Reset(o.pulse)
		case <-pulse.C:
			if err := s.sendMessage(keepalive()); err != nil {
				return err
			}
		case <-hopeless:
			gaveUp = true
		case <-nearly:
			if err := waitsError(waits); err != nil {
				return err
			}
		case <-over:
			return o.lateError()
		case <-waits.Changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// timers fire when the stream's time is nearly over, and when it is.
func (o *commandView) timers() (nearly, over <-chan time.Time) {
	if o.timeout == 0 {
		return nil, nil
	}
	return time.After(o.timeout - min(2*time.Second, o.timeout/10)), time.After(o.timeout)
}

// lateError is the end of a stream whose time is over.
func (o *commandView) lateError() error {
	if o.kills {
		return refuseWith(codeDeadline, "the command ran longer than the %s that it was given, so it is being killed; nobody has confirmed yet that it has ended: list the processes, or kill the sandbox to be sure", o.timeout)
	}
	return refuseWith(codeDeadline, "the stream was open for the %s that it was given; the command goes on", o.timeout)
}

// takeFrame sends what one frame says; done after the last.
func (o *commandView) takeFrame(ctx context.Context, s *connectStream, f commandFrame) (done bool, err error) {
	if f.err != nil {
		return true, o.lostError(ctx, f.err)
	}
	switch f.kind {
	case channel.FrameStarted:
		var started channel.Started
		if err := channel.DecodeJSON(f.kind, f.payload, &started); err != nil {
			return true, err
		}
		return false, o.sendStart(s, started.PID)
	case channel.FrameStdout, channel.FrameStderr:
		return false, s.sendBytes(o.output(f.kind), f.payload)
	case channel.FrameGap:
		var gap channel.Gap
		if err := channel.DecodeJSON(f.kind, f.payload, &gap); err != nil {
			return true, err
		}
		note := fmt.Sprintf("\n[cofferdam: %d bytes of output were not kept]\n", gap.Bytes)
		return false, s.sendBytes(o.output(channel.FrameStderr), []byte(note))
	case channel.FrameExit:
		var exit channel.Exit
		if err := channel.DecodeJSON(f.kind, f.payload, &exit); err != nil {
			return true, err
		}
		return true, o.sendEnd(ctx, s, exit)
	case channel.FrameOpen, channel.FrameReply, channel.FrameStdin, channel.FrameResize, channel.FrameSignal, channel.FrameEvent:
	}
	return true, fmt.Errorf("a command's stream had a frame of type %d", f.kind)
}

// sendStart sends the first event, once.
func (o *commandView) sendStart(s *connectStream, pid int) error {
	if o.started {
		return nil
	}
	o.started = true
	return s.sendMessage(processEvent(map[string]any{"start": map[string]any{"pid": pid}}))
}

// output is the name of what a frame's bytes belong to.
func (o *commandView) output(kind channel.FrameType) string {
	switch {
	case o.what.terminal:
		return "pty"
	case kind == channel.FrameStderr:
		return "stderr"
	}
	return "stdout"
}

// sendEnd tells how the command ended. One that ended with its sandbox has no end of
// its own: the connection breaks.
func (o *commandView) sendEnd(ctx context.Context, s *connectStream, exit channel.Exit) error {
	if exit.Error != "" && o.endedWithSandbox(ctx) {
		return errBroken
	}
	if o.started {
		lines, told := o.d.alarms.newAlarms(ctx, o.c.id)
		for _, line := range lines {
			if err := s.sendBytes(o.output(channel.FrameStderr), []byte("\n"+line+"\n")); err != nil {
				return err
			}
		}
		told()
	}
	switch {
	case exit.Error != "" && !o.started:
		return refuseWith(codeInvalid, "%s", exit.Error)
	case exit.TimedOut && exit.Error != "": // which says whether it has ended
		return refuseWith(codeDeadline, "the command ran longer than it may: %s", exit.Error)
	case exit.TimedOut:
		return refuseWith(codeDeadline, "the command ran longer than it may, and was killed")
	}
	return s.sendMessage(processEvent(map[string]any{"end": endEvent(exit)}))
}

// endedWithSandbox waits a moment for the news that the sandbox is gone: the end of
// its commands may be known first.
func (o *commandView) endedWithSandbox(ctx context.Context) bool {
	if o.started && !o.d.isGone(o.c.id) {
		timer := time.NewTimer(2 * time.Second)
		defer timer.Stop()
		select {
		case <-o.c.box.Gone():
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return o.d.isGone(o.c.id)
}

// lostError is the end of a stream whose frames broke off.
func (o *commandView) lostError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if o.d.isGone(o.c.id) {
		return errBroken
	}
	return fmt.Errorf("the command's output broke off: %w", err)
}

// end event, as the protocol has it.
type end struct {
	ExitCode int    `json:"exitCode"` // -1 for a signal
	Exited   bool   `json:"exited"`
	Status   string `json:"status"`
	Error    string `json:"error,omitempty"`
}

func endEvent(exit channel.Exit) end {
	e := end{ExitCode: exit.Code, Exited: true, Status: "exit status " + strconv.Itoa(exit.Code), Error: exit.Error}
	if exit.Signal != "" {
		e.ExitCode, e.Exited = -1, false
		e.Status = "signal: " + unix.SignalNum("SIG"+exit.Signal).String()
	}
	if e.Error == "" && e.ExitCode != 0 {
		e.Error = e.Status
	}
	return e
}

func processEvent(event map[string]any) any { return map[string]any{"event": event} }

func keepalive() any { return processEvent(map[string]any{"keepalive": struct{}{}}) }

// commandFrame is one of a command's, or why there are no more.
type commandFrame struct {
	kind    channel.FrameType
	payload []byte // valid until it is taken
	err     error
}

// frames hands frames over one by one: the next is read when the last was taken.
type frames struct {
	next  chan commandFrame
	taken chan struct{}
}

// readFrames reads until an error, or until ctx ends and the connection is closed.
func readFrames(ctx context.Context, conn *channel.Conn) frames {
	f := frames{next: make(chan commandFrame), taken: make(chan struct{}, 1)}
	safego.Go(func() {
		for {
			kind, payload, err := conn.ReadFrame()
			select {
			case f.next <- commandFrame{kind, payload, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			select {
			case <-f.taken:
			case <-ctx.Done():
				return
			}
		}
	})
	return f
}
