package mcp

import (
	"context"
	"errors"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// peer is one client at the other end, from its first message to its last. Safe for concurrent use.
type peer struct {
	cfg     *Config
	user    string // whose token it showed; "": nobody's
	secret  string
	session *sdk.ServerSession

	life context.Context //nolint:containedctx // the peer's own, longer than a call
	end  context.CancelCauseFunc

	calls  chan struct{} // a place for each call
	making chan struct{} // one sandbox is made at a time

	mu       sync.Mutex // guards what follows
	backend  Backend
	run      string // of all its sandboxes; "": it has had none
	standard string // the sandbox of calls that name none
	boxes    []string
	left     map[string]*left         // commands that wait for a person
	seen     map[string]int           // refusals that were told, by sandbox and id
	asked    map[string]approvalAsked // requests that it filed, by their id
	order    []string                 // of asked
}

// call is one call of a tool.
type call struct {
	peer *peer
	req  *sdk.CallToolRequest
}

// The reasons that end a peer's calls.
var (
	errGone    = errors.New("the client went away")
	errClosing = errors.New("the daemon ends")
)

// enterCall begins a call: its context ends with the peer, too. done must be called at its end.
func (p *peer) enterCall(ctx context.Context) (during context.Context, done func(), err error) {
	select {
	case p.calls <- struct{}{}:
	default:
		return nil, nil, failure(codeTooMany, "too many calls go on at one time", "wait for one of them to return")
	}
	during, end := context.WithCancelCause(ctx)
	stop := safego.When(p.life, func() { end(context.Cause(p.life)) })
	return during, func() {
		stop()
		end(nil)
		<-p.calls
	}, nil
}

// connected is the backend, which is connected to when it is first needed.
func (p *peer) connected(ctx context.Context, anew bool) (Backend, error) {
	p.mu.Lock()
	b := p.backend
	p.mu.Unlock()
	if b != nil && !anew {
		return b, nil
	}
	b, err := p.cfg.Connect(ctx, p.secret)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backend = b
	return b, nil
}

// askBackend asks the backend; where no daemon is there, which then has done nothing, the one that
// takes its place is asked.
func askBackend[T any](ctx context.Context, p *peer, question func(Backend) (T, error)) (answer T, err error) {
	b, err := p.connected(ctx, false)
	if err != nil {
		return answer, err
	}
	answer, err = question(b)
	if !errors.Is(err, client.ErrNoDaemon) {
		return answer, err
	}
	if b, err = p.connected(ctx, true); err != nil {
		return answer, err
	}
	return question(b)
}

// tellBackend asks the backend for what has no answer.
func tellBackend(ctx context.Context, p *peer, do func(Backend) error) error {
	_, err := askBackend(ctx, p, func(b Backend) (struct{}, error) { return struct{}{}, do(b) })
	return err
}
