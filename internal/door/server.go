package door

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Serve answers the gateway's calls on conn until ctx ends or the connection
// does, then closes it and waits for the calls under way. An error means that
// the gateway did not speak the door's language or that the connection broke;
// its orderly end is none.
func Serve(ctx context.Context, conn net.Conn, d Door) error {
	session, err := yamux.Server(conn, sessionConfig())
	if err != nil {
		return errors.Join(fault.Wrap(fault.ErrUnavailable, err, "the door can't be opened"), conn.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := errand.When(ctx, func() { _ = session.Close() }) // Accept tells
	s := &server{door: d, large: make(gate, 4)}
	var calls sync.WaitGroup
	defer func() {
		cancel()
		stop()
		_ = session.Close() // it has ended already
		calls.Wait()
	}()
	streams := make(gate, maxStreams+maxWaits)
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, yamux.ErrSessionShutdown) || ctx.Err() != nil {
				return s.broken()
			}
			return fault.Wrap(fault.ErrUnavailable, err, "the gateway's connection broke")
		}
		select {
		case streams <- struct{}{}:
		default:
			_ = stream.Close() // it is one too many
			continue
		}
		errand.In(&calls, func() {
			defer func() { <-streams }()
			s.serveStream(ctx, stream)
		})
	}
}

type server struct {
	door  Door
	large gate // index calls with files: their memory is bounded

	mu  sync.Mutex
	bad error // the first violation of the protocol
}

func (s *server) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}

func (s *server) violated(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad == nil {
		s.bad = err
	}
}

// call is a message from the gateway. Its body is one of the reader's two
// buffers, and free again when the next call but one is read.
type call struct {
	method method
	body   []byte
	done   func() // gives its memory free for other large calls
}

// serveStream answers the calls of one stream. While a call is under way the
// reader waits for the next one, and so sees the stream's end.
func (s *server) serveStream(ctx context.Context, stream *yamux.Stream) {
	ctx, cancel := context.WithCancel(ctx)
	in := make(chan call)
	var reader sync.WaitGroup
	errand.In(&reader, func() {
		defer cancel()
		s.readCalls(ctx, stream, in)
	})
	defer reader.Wait()
	defer stream.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // never fails; it ends the reader
	defer stream.Close()                          //nolint:errcheck // the other side sees it or is gone
	defer cancel()
	reply := new(bytes.Buffer)
	for {
		select {
		case c := <-in:
			err := s.reply(ctx, stream, c, reply)
			c.done()
			if err != nil {
				return
			}
			reply = emptied(reply)
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) readCalls(ctx context.Context, stream *yamux.Stream, in chan<- call) {
	buffers := [2]*bytes.Buffer{new(bytes.Buffer), new(bytes.Buffer)}
	for i := 0; ; i = 1 - i {
		buffers[i] = emptied(buffers[i])
		c, err := s.readCall(ctx, stream, buffers[i])
		if err != nil {
			if errors.Is(err, fault.ErrInvalid) {
				s.violated(err)
			}
			return
		}
		select {
		case in <- c:
		case <-ctx.Done():
			c.done()
			return
		}
	}
}

func (s *server) readCall(ctx context.Context, stream *yamux.Stream, buf *bytes.Buffer) (call, error) {
	m := incoming{conn: stream, limit: func(kind byte) int { return method(kind).limit() }, patience: messageTime}
	kind, n, err := m.head()
	if err != nil {
		return call{}, err
	}
	c := call{method: method(kind), done: func() {}}
	if n > smallMessage {
		select {
		case s.large <- struct{}{}:
			c.done = func() { <-s.large }
		case <-ctx.Done():
			return call{}, ctx.Err()
		}
	}
	if err := m.body(buf, n); err != nil {
		c.done()
		return call{}, err
	}
	c.body = buf.Bytes()
	return c, nil
}

// reply answers one call. An error means that the stream is of no more use.
func (s *server) reply(ctx context.Context, stream *yamux.Stream, c call, buf *bytes.Buffer) error {
	body, err := s.dispatch(ctx, c)
	st := statusDone
	if err != nil {
		st, body = failure(err)
	}
	if err := encodeMessage(buf, byte(st), body); err != nil {
		if err := encodeMessage(buf, byte(statusInternal), errorMessage{"the daemon's answer is too long"}); err != nil {
			return err
		}
	}
	if err := stream.SetWriteDeadline(time.Now().Add(messageTime)); err != nil {
		return err
	}
	_, err = stream.Write(buf.Bytes())
	return err
}

func failure(err error) (status, any) {
	st, m := statusOf(err)
	return st, m
}

func (s *server) dispatch(ctx context.Context, c call) (any, error) {
	switch c.method {
	case callIndex:
		return decoded(c.body, func(q indexCall) (indexReply, error) { return s.index(ctx, q) })
	case callJudge:
		return decoded(c.body, func(q JudgeAsk) (Answer, error) { return s.door.Judge(ctx, q) })
	case callOutline:
		return decoded(c.body, func(q OutlineAsk) (Answer, error) { return s.door.Outline(ctx, q) })
	case callPreview:
		return decoded(c.body, func(q PreviewAsk) (Answer, error) { return s.door.Preview(ctx, q) })
	case callWalk:
		return decoded(c.body, func(q WalkAsk) (Answer, error) { return s.door.Walk(ctx, q) })
	case callAwait:
		return decoded(c.body, func(q AwaitAsk) (Answer, error) { return s.door.Await(ctx, q) })
	case callServe:
		return decoded(c.body, func(q ServeAsk) (Answer, error) { return s.door.Serve(ctx, q) })
	case callName:
		return decoded(c.body, func(q NameAsk) (NameAnswer, error) { return s.door.Name(ctx, q) })
	case callConnect:
		return decoded(c.body, func(q ConnectAsk) (Answer, error) { return s.door.Connect(ctx, q) })
	case callDisconnected:
		return decoded(c.body, func(q Disconnection) (nothing, error) { return nothing{}, s.door.Disconnected(ctx, q) })
	case callHostRefused:
		return decoded(c.body, func(q HostRefusal) (Answer, error) { return s.door.HostRefused(ctx, q) })
	case callStanding:
		return decoded(c.body, func(q standingCall) ([]uint64, error) { return s.door.Standing(ctx, q.Sandbox, q.Connections) })
	case callFailed:
		return decoded(c.body, func(q Failure) (Answer, error) { return s.door.Failed(ctx, q) })
	case callEdges:
		return decoded(c.body, func(q edgesCall) (nothing, error) {
			return nothing{}, s.door.Edges(ctx, q.Sandbox, q.Parent, q.Requirements)
		})
	case callEdgesOfIndex:
		return decoded(c.body, func(q edgesOfIndexCall) (nothing, error) {
			return nothing{}, s.door.EdgesOfIndex(ctx, q.Sandbox, q.Project, q.IndexDigest, q.Requirements)
		})
	case callAborted:
		return decoded(c.body, func(q abortedCall) (nothing, error) {
			return nothing{}, s.door.Aborted(ctx, q.Sandbox, q.Seq, q.Sent)
		})
	case callShow:
		return decoded(c.body, func(q Showing) (nothing, error) { return nothing{}, s.door.Show(ctx, q) })
	case callSent:
		return decoded(c.body, func(q sentCall) (nothing, error) { return nothing{}, s.door.Sent(ctx, q.Sandbox, q.Seq) })
	case callRefusals:
		return decoded(c.body, func(q refusalsCall) ([]Refusal, error) { return s.door.Refusals(ctx, q.Sandbox, q.Request, q.Max) })
	case callPropose:
		return decoded(c.body, func(q ProposalAsk) ([]Proposed, error) { return s.door.Propose(ctx, q) })
	case callReach:
		return decoded(c.body, func(q ReachAsk) (ReachAnswer, error) { return s.door.Reach(ctx, q) })
	case callOwner:
		return decoded(c.body, func(q OwnerAsk) (OwnerAnswer, error) { return s.door.Owner(ctx, q) })
	case callTrust:
		return decoded(c.body, func(q trustCall) (Certificate, error) { return s.door.Trust(ctx, q.Hosts) })
	}
	return nil, fault.Invalid("the door knows no call %d", c.method)
}

func decoded[Q, A any](body []byte, do func(Q) (A, error)) (any, error) {
	var q Q
	if err := decodeBody(body, &q); err != nil {
		return nil, err
	}
	return do(q)
}

// index leaves the verdicts out if the gateway has them.
func (s *server) index(ctx context.Context, q indexCall) (indexReply, error) {
	a, err := s.door.Index(ctx, q.Ask)
	if err != nil || !slices.Contains(q.Known, a.Epoch) || a.Epoch == "" {
		return indexReply{Answer: a}, err
	}
	return indexReply{Answer: IndexAnswer{Epoch: a.Epoch, RequestID: a.RequestID, WantEdges: a.WantEdges}, Same: true}, nil
}
