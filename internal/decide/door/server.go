package door

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sync/semaphore"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Serve answers the gateway's calls on conn until ctx ends or the connection
// does, then closes it and waits for the calls under way. An error means that
// the gateway did not speak the door's language or that the connection broke;
// its orderly end is none.
func Serve(ctx context.Context, conn net.Conn, d Door) error {
	return newServer(d).serveConn(ctx, conn)
}

func (s *server) serveConn(ctx context.Context, conn net.Conn) error {
	session, err := yamux.Server(conn, sessionConfig())
	if err != nil {
		return errors.Join(fault.Wrap(fault.ErrUnavailable, err, "the door can't be opened"), conn.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := safego.When(ctx, func() { _ = session.Close() }) // Accept tells
	var calls sync.WaitGroup
	defer func() {
		cancel()
		stop()
		_ = session.Close() // it has ended already
		calls.Wait()
	}()
	streams := make(gate, maxStreams)
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
		safego.In(&calls, func() {
			defer func() { <-streams }()
			s.serveStream(ctx, stream)
		})
	}
}

type server struct {
	calls map[method]callHandler
	large gate // messages that are being read: their memory is bounded
	// Bytes of large messages whose calls are under way: those that a person may keep, and others.
	held, passing *semaphore.Weighted

	mu  sync.Mutex
	bad error // the first violation of the protocol
}

// maxHeld and maxPassing bound those bytes, as they are sent; what is made of them may take more
// memory. The gateway bounds them for each sandbox; this is for one that does not, or for very many
// sandboxes. Messages that people keep for days take no place of the others'.
const maxHeld, maxPassing = 512 << 20, 512 << 20

func newServer(d Door) *server {
	return &server{calls: handlers(d), large: make(gate, 4), held: semaphore.NewWeighted(maxHeld), passing: semaphore.NewWeighted(maxPassing)}
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

// call is a question of the gateway's that was read. Nothing of its message is kept.
type call struct {
	answer answerFunc
	done   func() // the memory of what it says counts no more
}

// answerFunc finds out what a question is answered with.
type answerFunc func(context.Context) (any, error)

// serveStream answers the calls of one stream. While a call is under way the
// reader waits for the next one, and so sees the stream's end.
func (s *server) serveStream(ctx context.Context, stream *yamux.Stream) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, lifeKey{}, ctx))
	in := make(chan call)
	var reader sync.WaitGroup
	safego.In(&reader, func() {
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
			err := s.replyCall(ctx, stream, c, reply)
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
	buf := new(bytes.Buffer)
	for {
		c, err := s.readCall(ctx, stream, buf)
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
		buf = emptied(buf)
	}
}

// readCall reads a message and what it asks. A large one has a place only until then: its
// answer may take days, and others wait for the place.
func (s *server) readCall(ctx context.Context, stream *yamux.Stream, buf *bytes.Buffer) (call, error) {
	m := incoming{conn: stream, limit: func(kind byte) int { return method(kind).messageLimit() }, timeout: messageTime}
	kind, n, err := m.readHead()
	if err != nil {
		return call{}, err
	}
	release, full, err := s.makeRoom(ctx, method(kind), n)
	if err != nil {
		return call{}, err
	}
	if n > smallMessage {
		select {
		case s.large <- struct{}{}:
			defer func() { <-s.large }()
		case <-ctx.Done():
			release()
			return call{}, ctx.Err()
		}
	}
	if err := m.readBody(buf, n); err != nil {
		release()
		return call{}, err
	}
	c := call{done: release}
	err = full
	if err == nil {
		c.answer, err = s.decodeCall(method(kind), buf.Bytes())
	}
	if err != nil {
		c.answer = func(context.Context) (any, error) { return nil, err }
	}
	return c, nil
}

// makeRoom counts a large message, which has come so far that its length is known. One that others
// leave no room for waits for that, or is read and answered by full: those that people keep do not end
// by themselves.
func (s *server) makeRoom(ctx context.Context, m method, n int) (release func(), full, err error) {
	if n <= smallMessage {
		return func() {}, nil, nil
	}
	if m.classOf() != classWait {
		if err := s.passing.Acquire(ctx, int64(n)); err != nil {
			return nil, nil, err
		}
		return func() { s.passing.Release(int64(n)) }, nil, nil
	}
	if !s.held.TryAcquire(int64(n)) {
		return func() {}, fault.New(fault.ErrUnavailable, "the daemon has as many large questions waiting as it may; try again later"), nil
	}
	return func() { s.held.Release(int64(n)) }, nil, nil
}

// replyCall answers one call. An error means that the stream is of no more use.
func (s *server) replyCall(ctx context.Context, stream *yamux.Stream, c call, buf *bytes.Buffer) error {
	body, err := c.answer(ctx)
	st := statusDone
	if err != nil {
		st, body = statusOf(err)
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

// callHandler reads one kind of call of its body, of which nothing is kept.
type callHandler func(body []byte) (answerFunc, error)

// answering decodes a question and has it answered.
func answering[Q, A any](do func(context.Context, Q) (A, error)) callHandler {
	return func(body []byte) (answerFunc, error) {
		var q Q
		if err := decodeBody(body, &q); err != nil {
			return nil, err
		}
		return func(ctx context.Context) (any, error) { return do(ctx, q) }, nil
	}
}

// noting is answering for what has no answer but that it was done.
func noting[Q any](do func(context.Context, Q) error) callHandler {
	return answering(func(ctx context.Context, q Q) (nothing, error) { return nothing{}, do(ctx, q) })
}

// handlers are all calls that a door knows.
func handlers(d Door) map[method]callHandler {
	all := hostHandlers(d)
	maps.Copy(all, map[method]callHandler{
		callIndex:     answering(func(ctx context.Context, q indexCall) (indexReply, error) { return answerIndex(ctx, d, q) }),
		callOwner:     answering(d.Owner),
		callJudge:     answering(d.Judge),
		callOutline:   answering(d.Outline),
		callPreview:   answering(d.Preview),
		callWalk:      answering(d.Walk),
		callAwait:     answering(d.Await),
		callServe:     answering(d.Serve),
		callBuild:     answering(d.Build),
		callReadBuilt: answering(d.ReadBuilt),
		callStanding: answering(func(ctx context.Context, q standingCall) ([]uint64, error) {
			return d.Standing(ctx, q.Sandbox, q.Connections)
		}),
		callTools:    answering(func(ctx context.Context, q toolsCall) ([]Tool, error) { return d.Tools(ctx, q.Sandbox) }),
		callCallTool: answering(d.CallTool),
		callFailed:   answering(d.Failed),
		callEdges: noting(func(ctx context.Context, q edgesCall) error {
			return d.Edges(ctx, q.Sandbox, q.Parent, q.Requirements)
		}),
		callEdgesOfIndex: noting(func(ctx context.Context, q edgesOfIndexCall) error {
			return d.EdgesOfIndex(ctx, q.Sandbox, q.Project, q.IndexDigest, q.Requirements)
		}),
		callReach:        answering(d.Reach),
		callReached:      answering(d.Reached),
		callStopReaching: noting(d.StopReaching),
		callPropose:      answering(d.Propose),
		callShow:         noting(d.Show),
		callAsking:       noting(d.Asking),
		callSent:         noting(func(ctx context.Context, q sentCall) error { return d.Sent(ctx, q.Sandbox, q.Seq) }),
		callAborted:      noting(func(ctx context.Context, q abortedCall) error { return d.Aborted(ctx, q.Sandbox, q.Seq, q.Sent) }),
		callRefusals: answering(func(ctx context.Context, q refusalsCall) ([]Refusal, error) {
			return d.Refusals(ctx, q.Sandbox, q.Request, q.Max)
		}),
		callTrust: answering(func(ctx context.Context, q trustCall) (Certificate, error) { return d.Trust(ctx, q.Hosts) }),
	})
	return all
}

// hostHandlers are the calls about hosts.
func hostHandlers(d Door) map[method]callHandler {
	return map[method]callHandler{
		callName:         answering(d.Name),
		callAwaitHost:    answering(d.AwaitHost),
		callResolving:    answering(d.Resolving),
		callConnect:      answering(d.Connect),
		callDisconnected: noting(d.Disconnected),
		callHostRefused:  answering(d.HostRefused),
		callLeaf:         answering(d.Leaf),
		callRequest:      answering(d.Request),
		callAwaitPush:    answering(d.AwaitPush),
		callRequested:    noting(d.Requested),
		callCredentials:  answering(d.Credentials),
		callSecrets:      answering(d.Secrets),
		callLeaked:       answering(d.Leaked),
		callLent:         answering(d.Lent),
		callDeclined:     noting(d.Declined),

		callScans:          answering(d.Scans),
		callFoundInRequest: answering(d.FoundInRequest),
	}
}

func (s *server) decodeCall(m method, body []byte) (answerFunc, error) {
	read, known := s.calls[m]
	if !known {
		return nil, fault.Invalid("the door knows no call %d", m)
	}
	return read(body)
}

// answerIndex leaves the verdicts out if the gateway has them.
func answerIndex(ctx context.Context, d Door, q indexCall) (indexReply, error) {
	a, err := d.Index(ctx, q.Ask)
	if err != nil || !slices.Contains(q.Known, a.Epoch) || a.Epoch == "" {
		return indexReply{Answer: a}, err
	}
	return indexReply{Answer: IndexAnswer{Epoch: a.Epoch, RequestID: a.RequestID, WantEdges: a.WantEdges}, Same: true}, nil
}
