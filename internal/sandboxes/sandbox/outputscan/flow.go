package outputscan

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// maxWhole is how much of a file is kept until it is known that nothing in it is blocked.
// Of a longer one the beginning goes out before.
const maxWhole = 1 << 20

// lastFrame is how much more that may be, by the frame that is read last.
const lastFrame = channel.MaxPayload + 64

// recordTime bounds how long a finding may take to be on record.
const recordTime = 30 * time.Second

// flow is a connection whose frames are read through scanners, one for each stream of
// bytes. Writing to it, and closing it, is the connection's own. One goroutine reads.
type flow struct {
	net.Conn
	plan     dlp.Plan
	set      *dlp.Set
	tell     func(dlp.Finding) error
	blocked  func()         // is told once that nothing goes on; may be nil
	giveBack func()         // is called once when it is closed; may be nil
	refusal  *channel.Reply // takes the place of the last frame of what was blocked; nil: it stays

	whole int // nothing is read before all of it came, as far as these bytes: it can be refused then. 0: it is read as it comes

	skip int64 // bytes that the client has already
	at   int64 // where the next frame's bytes begin, of all streams together

	frames chan flowFrame
	closed chan struct{}
	once   sync.Once

	ready    bytes.Buffer // frames that may be read
	out      *channel.Writer
	err      error // after ready
	scanners map[channel.FrameType]*scannedStream
	waiting  channel.FrameType // whose bytes wait; 0: none do
	until    time.Time         // and until when
	over     bool              // it was blocked
}

type flowFrame struct {
	kind    channel.FrameType
	payload []byte
	err     error
}

func (s *Scanner) newFlow(conn net.Conn, p dlp.Plan, sandbox string, at admission.Place, where string) *flow {
	f := &flow{
		Conn: conn, plan: p, set: s.set(), frames: make(chan flowFrame), closed: make(chan struct{}), scanners: map[channel.FrameType]*scannedStream{},
		tell: func(found dlp.Finding) error {
			ctx, cancel := context.WithTimeout(context.Background(), recordTime)
			defer cancel()
			return s.door.Found(ctx, sandbox, at, where, found)
		},
	}
	f.out = channel.NewWriter(&f.ready)
	safego.Go(f.receiveFrames)
	return f
}

// awaitBytes has nothing read before all came, as far as n bytes, for which there is room at once: a buffer that grows takes
// twice as much.
func (f *flow) awaitBytes(n int) {
	if f.whole = n; n > 0 {
		f.ready.Grow(n + lastFrame)
	}
}

// receiveFrames reads frames until the connection is closed.
func (f *flow) receiveFrames() {
	reader := channel.NewReader(f.Conn)
	for {
		kind, payload, err := reader.ReadFrame()
		select {
		case f.frames <- flowFrame{kind, bytes.Clone(payload), err}:
		case <-f.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Close ends the connection.
func (f *flow) Close() error {
	f.once.Do(func() {
		close(f.closed)
		if f.giveBack != nil {
			f.giveBack()
		}
	})
	return f.Conn.Close()
}

// CloseWrite ends the client's half.
func (f *flow) CloseWrite() error {
	if half, ok := f.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read gives the frames as they may go out.
func (f *flow) Read(p []byte) (int, error) {
	for f.err == nil && (f.ready.Len() == 0 || f.ready.Len() < f.whole) {
		f.err = f.nextFrame()
	}
	f.whole = 0
	if f.ready.Len() == 0 {
		return 0, f.err
	}
	return f.ready.Read(p)
}

// nextFrame takes a frame, or lets go of what has waited for long enough.
func (f *flow) nextFrame() error {
	var late <-chan time.Time
	if f.waiting != 0 {
		timer := time.NewTimer(time.Until(f.until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case got := <-f.frames:
		return f.takeFrame(got)
	case <-late:
		return f.releaseWaiting()
	case <-f.closed:
		return net.ErrClosed
	}
}

func (f *flow) takeFrame(got flowFrame) error {
	switch {
	case got.err != nil:
		if err := f.finishStreams(); err != nil {
			return err
		}
		return got.err
	case f.over:
		return f.afterBlocked(got)
	case got.kind == channel.FrameStdout || got.kind == channel.FrameStderr:
		return f.takeBytes(got)
	case got.kind == channel.FrameGap:
		return f.takeGap(got)
	case got.kind == channel.FrameExit || got.kind == channel.FrameReply:
		if err := f.finishStreams(); err != nil {
			return err
		}
		if f.over {
			return f.afterBlocked(got)
		}
		f.whole = 0
	}
	return f.out.WriteFrame(got.kind, got.payload)
}

// afterBlocked is what becomes of frames behind what was blocked.
func (f *flow) afterBlocked(got flowFrame) error {
	switch {
	case got.kind == channel.FrameExit:
		return f.tellExit(got)
	case f.refusal != nil:
		refusal := f.refusal
		f.refusal = nil
		if f.whole > 0 {
			f.ready.Reset()
		}
		if err := f.out.WriteJSON(channel.FrameReply, refusal); err != nil {
			return err
		}
		return io.EOF
	}
	return nil
}

// tellExit tells the end of a command whose output is blocked: it was killed, or had ended. Its
// true end is on record.
func (f *flow) tellExit(got flowFrame) error {
	var exit channel.Exit
	if err := channel.DecodeJSON(got.kind, got.payload, &exit); err != nil {
		return err
	}
	exit.Code, exit.Signal, exit.Claimed = killedCode, "KILL", false
	exit.Error = "the output ends here: it has what looks like a secret or personal data, which the policy's secret_scanning.output blocks; cofferdam why tells more"
	return f.out.WriteJSON(got.kind, exit)
}

// killedCode is the exit code of what was killed, as a shell says it.
const killedCode = 137

// takeBytes takes bytes of one stream. Those of another that wait go first: the order of all
// is what offsets are counted by.
func (f *flow) takeBytes(got flowFrame) error {
	if f.waiting != 0 && f.waiting != got.kind {
		if err := f.releaseWaiting(); err != nil {
			return err
		}
	}
	s := f.scanners[got.kind]
	if s == nil {
		s = &scannedStream{Scanner: f.set.Scanner(f.plan)}
		f.scanners[got.kind] = s
	}
	s.noteOffset(f.at)
	f.at += int64(len(got.payload))
	s.length(len(got.payload))
	return f.letOut(got.kind, s)(s.Write(got.payload))
}

// letOut gives out what a scanner let go, and tells what it found.
func (f *flow) letOut(kind channel.FrameType, s *scannedStream) func([]byte, []dlp.Finding) error {
	return func(out []byte, found []dlp.Finding) error {
		for _, one := range found {
			one.At = s.placeInOutput(one.At)
			if err := f.tell(one); err != nil {
				return err
			}
		}
		if err := f.emitFrames(kind, out); err != nil {
			return err
		}
		wait := s.Patience()
		switch {
		case s.Blocked():
			f.stopOutput()
		case wait == 0:
			f.waiting = 0
		case f.waiting == 0 || len(out) > 0: // what waits now has not waited before
			f.waiting, f.until = kind, time.Now().Add(wait)
		}
		if f.over && f.refusal != nil {
			return f.afterBlocked(flowFrame{})
		}
		return nil
	}
}

// emitFrames writes bytes as frames, but for those that the client has.
func (f *flow) emitFrames(kind channel.FrameType, out []byte) error {
	known := min(f.skip, int64(len(out)))
	f.skip -= known
	for out = out[known:]; len(out) > 0; {
		n := min(len(out), channel.MaxPayload)
		if err := f.out.WriteFrame(kind, out[:n]); err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

// releaseWaiting lets go of what waits.
func (f *flow) releaseWaiting() error {
	kind := f.waiting
	f.waiting = 0
	return f.emitFrames(kind, f.scanners[kind].Release())
}

// finishStreams finishes both streams.
func (f *flow) finishStreams() error {
	for _, kind := range []channel.FrameType{channel.FrameStdout, channel.FrameStderr} {
		if s := f.scanners[kind]; s != nil && !f.over {
			if err := f.letOut(kind, s)(s.Close()); err != nil {
				return err
			}
		}
	}
	f.scanners, f.waiting = map[channel.FrameType]*scannedStream{}, 0
	return nil
}

// takeGap takes note of output that was not kept: what is before it and behind it is apart.
func (f *flow) takeGap(got flowFrame) error {
	var gap channel.Gap
	if err := channel.DecodeJSON(got.kind, got.payload, &gap); err != nil {
		return err
	}
	if err := f.finishStreams(); err != nil || f.over {
		return err
	}
	f.at += gap.Bytes
	known := min(f.skip, gap.Bytes)
	f.skip -= known
	if gap.Bytes -= known; gap.Bytes == 0 && known > 0 {
		return nil
	}
	return f.out.WriteJSON(channel.FrameGap, gap)
}

// stopOutput lets nothing out any more.
func (f *flow) stopOutput() {
	f.over, f.waiting = true, 0
	if f.blocked != nil {
		f.blocked()
	}
}
