package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// passage is one connection of a guest to a host. The guest's first bytes tell which host it means;
// only then is the name resolved, the connection judged and recorded, and dialled at the addresses
// that were judged.
type passage struct {
	router  *Router
	sandbox string
	name    string
	port    int
	held    bool // a person has to be asked
	judged  bool // each request on it is, so that TLS is ended
	git     bool // git's rules are among those
	guest   net.Conn
	gone    func() bool // the guest has said that the connection's client has gone
	cancel  context.CancelFunc
	out, in atomic.Int64 // bytes to the host, and from it
	said    atomic.Bool  // the guest says no more, and the host has all that it said

	reaching sync.Mutex // held while the host is judged and dialled, so that it is judged once
	target   outbound.Target
	telling  sync.Mutex // held while the door is told what became of requests; guards told
	told     int64      // requests that connections to the host have on record that have ended

	mu        sync.Mutex // guards all below
	over      bool
	far       []*metered // to the host; several in turn, if its client speaks HTTP
	dials     int64      // that made them, since seq
	seq       uint64     // of the record that it began; 0: there is none
	last      uint64     // the same, also once that connection has ended
	began     time.Time
	address   string // of the last of far
	problem   string // why it ended, if not by its ends
	unreached bool
	carrier   *requests.Carrier // nil: requests are not read
}

// connectHost carries a connection to a name that the policy has on that port, or has held
// for a person, as the answer about it says.
func (s *guestStream) connectHost(ctx context.Context, name string, port int, a door.NameAnswer) {
	p := &passage{
		router: s.router, sandbox: s.sandbox, name: name, port: port, guest: guestConn{s.conn, s.router.limits.Idle},
		held: a.Answer.Decision.Effect == policy.Hold, judged: a.Judged, git: a.Git,
	}
	if s.router.registry.IsRegistry(name) { // or its packages would come past the gateway
		s.replyOpen(channel.Reply{Error: p.refuseConnection(ctx, door.RuleHostProtocol, name+" is a registry, which is reached on port 443 alone, through the gateway")})
		return
	}
	if full := s.router.reports.whyFull(s.sandbox); full != "" {
		s.replyOpen(channel.Reply{Error: full})
		return
	}
	if rule, problem := s.router.guests.countConnection(s.sandbox); problem != "" {
		s.replyOpen(channel.Reply{Error: p.refuseConnection(ctx, rule, problem)})
		return
	}
	defer s.router.guests.disconnect(s.sandbox)
	id, gone, forget := s.router.guests.carryConn(s.sandbox, s.conn)
	defer forget()
	p.gone = gone
	ctx, p.cancel = context.WithCancel(ctx)
	defer p.finishConnection(ctx)
	if a.TCP && !a.Judged {
		s.connectTCP(ctx, p, id)
		return
	}
	if !s.replyOpen(channel.Reply{OK: true, Text: id}) {
		return
	}
	if err := s.conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	p.carryGuest(ctx)
}

// carryGuest finds out what the guest speaks, by its first byte.
func (p *passage) carryGuest(ctx context.Context) {
	if err := p.guest.SetReadDeadline(time.Now().Add(p.router.limits.HelloTime)); err != nil {
		return
	}
	first := make([]byte, 1)
	_, err := io.ReadFull(p.guest, first)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		p.refuseConnection(ctx, door.RuleHostProtocol, "the client said nothing at first; only TLS and HTTP tell which host is meant"+otherwise(p.port))
	case err != nil: // it has gone without a word
	case first[0] == firstOfTLS:
		p.carryTLS(ctx, first)
	case 'A' <= first[0] && first[0] <= 'Z':
		p.carryHTTP(ctx, first)
	default:
		p.refuseConnection(ctx, door.RuleHostProtocol, "the client speaks neither TLS nor HTTP, so it does not tell which host is meant"+otherwise(p.port))
	}
}

// errRefused is what a refusal is to who waits for a connection.
type errRefused struct {
	sentence  string
	unreached bool // nothing forbids it: the host does not answer
}

func (e *errRefused) Error() string { return e.sentence }

// admitProtocol has the connection to the host judged, if it is not yet: ctx is the connection's, which goes on while a client that has gone
// is still to be heard.
func (p *passage) admitProtocol(ctx context.Context, protocol string) error {
	p.reaching.Lock()
	defer p.reaching.Unlock()
	if p.target.Addresses != nil {
		return nil
	}
	return p.judgeConnection(ctx, protocol)
}

// reachHost connects to the host. At the first time it is resolved, judged and recorded;
// after that the same addresses are dialled again.
func (p *passage) reachHost(ctx context.Context, protocol string) (*metered, error) {
	p.reaching.Lock()
	defer p.reaching.Unlock()
	if p.target.Addresses == nil {
		if err := p.judgeConnection(ctx, protocol); err != nil {
			return nil, err
		}
	}
	m, err := p.dialHost(ctx)
	if _, refused := errors.AsType[*errRefused](err); refused || err != nil && ctx.Err() != nil {
		return nil, err // the last is that the guest has gone meanwhile
	}
	if err != nil {
		why := fmt.Sprintf("%s can't be connected to on port %d: %s", p.name, p.port, fault.Sentence(err, "it does not answer"))
		p.router.log.Info("a host can't be reached", "sandbox", p.sandbox, "name", p.name, "port", p.port, "error", err)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problem, p.unreached = why, true
		return nil, &errRefused{sentence: why, unreached: true}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		m.free()
		_ = m.Conn.Close()
		return nil, net.ErrClosed
	}
	if p.unreached {
		p.unreached, p.problem = false, ""
	}
	p.far, p.address, p.dials = append(p.far, m), m.RemoteAddr().String(), p.dials+1
	return m, m.touchMeter()
}

// dialHost makes a connection to the host, if there is room for one.
func (p *passage) dialHost(ctx context.Context) (*metered, error) {
	free, err := p.takeRoom(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := p.router.dialer.Dial(ctx, p.target)
	if err != nil {
		free()
		return nil, err
	}
	return &metered{Conn: conn, passage: p, free: free}, nil
}

// takeRoom takes a place for one more connection to the host, which counts as the guest's own do:
// its first was counted with the guest's. One that comes too fast waits.
func (p *passage) takeRoom(ctx context.Context) (free func(), err error) {
	p.mu.Lock()
	first, beside := p.dials == 0, len(p.far) > 0
	p.mu.Unlock()
	if first {
		return func() {}, nil
	}
	connect, free := p.router.guests.reconnect, func() {}
	if beside {
		connect, free = p.router.guests.countConnection, sync.OnceFunc(func() { p.router.guests.disconnect(p.sandbox) })
	}
	within, cancel := context.WithTimeout(ctx, p.router.limits.HelloTime)
	defer cancel()
	again := time.NewTicker(roomAgain)
	defer again.Stop()
	for {
		rule, problem := connect(p.sandbox)
		if problem == "" {
			return free, nil
		}
		select {
		case <-again.C:
		case <-within.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &errRefused{sentence: p.refuseConnection(ctx, rule, problem)}
		}
	}
}

// roomAgain is how often it is looked whether there is room.
const roomAgain = 20 * time.Millisecond

// forgetConn takes a connection to the host that was closed out of those that stop would close.
func (p *passage) forgetConn(m *metered) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far = slices.DeleteFunc(p.far, func(one *metered) bool { return one == m })
}

// closeFar closes the connections to the host.
func (p *passage) closeFar() {
	p.mu.Lock()
	far := slices.Clone(p.far)
	p.mu.Unlock()
	for _, m := range far {
		_ = m.Close() // who reads and writes on it sees that
	}
}

// judgeConnection asks a person where the policy says so, resolves the name, and asks the door for
// the connection.
func (p *passage) judgeConnection(ctx context.Context, protocol string) error {
	if err := p.awaitApproval(ctx, protocol); err != nil {
		return err
	}
	target, err := p.router.dialer.Resolve(ctx, p.name, p.port, p.mayResolve)
	if _, refused := errors.AsType[*errRefused](err); refused {
		return err
	}
	switch {
	case errors.Is(err, fault.ErrForbidden):
		return &errRefused{sentence: p.refuseConnection(ctx, door.RuleHostAddress, fault.Sentence(err, "an address that it may not have"))}
	case err != nil:
		p.router.log.Info("a host does not resolve", "sandbox", p.sandbox, "name", p.name, "error", err)
		return &errRefused{sentence: p.refuseConnection(ctx, door.RuleHostUnresolved, fault.Sentence(err, "it does not resolve"))}
	}
	ctx, cancel := recording(ctx)
	defer cancel()
	a, err := p.router.door.Connect(ctx, door.ConnectAsk{Sandbox: p.sandbox, Name: p.name, Port: p.port, Protocol: protocol, Addresses: target.Addrs(), Pinned: target.Pinned, Judged: p.judged})
	switch {
	case err != nil:
		p.router.log.Error("a connection could not be judged", "sandbox", p.sandbox, "error", err)
		return &errRefused{sentence: "the connection could not be judged"}
	case !a.Decision.Allowed():
		return &errRefused{sentence: withRequest(a.Decision.Reason, a.RequestID)}
	}
	p.target = target
	if !p.beginRecorded(a.Seq) {
		p.disconnected(ctx)
		return net.ErrClosed
	}
	return nil
}

// mayResolve asks the door before a name server hears of the name, and has it put on record: a
// part of a name that the policy has by a pattern is the guest's.
func (p *passage) mayResolve(ctx context.Context) error {
	ctx, cancel := recording(ctx)
	defer cancel()
	a, err := p.router.door.Resolving(ctx, door.ResolveAsk{Sandbox: p.sandbox, Name: p.name, Port: p.port})
	switch {
	case err != nil:
		p.router.log.Error("a name could not be judged", "sandbox", p.sandbox, "error", err)
		return &errRefused{sentence: "the connection could not be judged"}
	case !a.Decision.Allowed():
		return &errRefused{sentence: withRequest(a.Decision.Reason, a.RequestID)}
	}
	return nil
}

// beginRecorded takes the record that the connection to the host began. false: the guest has gone
// meanwhile, and nobody else will tell that the connection has ended.
func (p *passage) beginRecorded(seq uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq, p.last, p.began = seq, seq, time.Now()
	if !p.over {
		p.router.passages.addPassage(p) // before stop can have begun, so that finish removes it
	}
	return !p.over
}

// refuseConnection records that the connection is refused, and gives the sentence for the guest.
func (p *passage) refuseConnection(ctx context.Context, rule, reason string) string {
	return p.recordRefusal(ctx, door.HostRefusal{Sandbox: p.sandbox, Name: p.name, Port: p.port, Rule: rule, Reason: reason})
}

func (p *passage) recordRefusal(ctx context.Context, h door.HostRefusal) string {
	ctx, cancel := recording(ctx)
	defer cancel()
	a, err := p.router.door.HostRefused(ctx, h)
	if err != nil {
		p.router.log.Error("a refused connection could not be recorded", "sandbox", p.sandbox, "error", err)
	}
	return withRequest(h.Reason, a.RequestID)
}

// withRequest is a reason with the id under which `cofferdam why` has it.
func withRequest(reason, request string) string {
	if request == "" {
		return reason
	}
	return fmt.Sprintf("%s; request %s; see: cofferdam why", reason, request)
}

// stopConnection ends the connection at both ends, for a reason ("": its ends have ended it).
func (p *passage) stopConnection(problem string) {
	p.cancel()
	p.mu.Lock()
	p.over = true
	if p.problem == "" {
		p.problem = problem
	}
	p.mu.Unlock()
	_ = p.guest.Close() // who reads and writes on it sees that
	p.closeFar()
}

// recordTime bounds how long the door takes to record something of a connection.
const recordTime = 10 * time.Second

// recording is for what is recorded also if the guest has gone meanwhile.
func recording(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTime)
}

// finishConnection ends the connection and tells the door what it carried.
func (p *passage) finishConnection(ctx context.Context) {
	p.stopConnection("")
	p.disconnected(ctx)
}

// disconnected tells the door that the connection to the host has ended, if it began. It
// can begin again.
func (p *passage) disconnected(ctx context.Context) {
	p.router.passages.removePassage(p)
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	d := door.Disconnection{
		Sandbox: p.sandbox, Seq: p.seq, Address: p.address, BytesOut: p.out.Swap(0), BytesIn: p.in.Swap(0),
		Milliseconds: time.Since(p.began).Milliseconds(), Problem: p.problem, Unreached: p.unreached, Dials: p.dials,
	}
	begun, carrier, last := !p.began.IsZero(), p.carrier, p.last
	p.seq, p.began, p.dials = 0, time.Time{}, 0
	p.mu.Unlock()
	r := report{seq: last}
	if carrier != nil && last != 0 {
		r.requests = carrier.Done()
	}
	if begun {
		if carrier != nil {
			d.Requests = carrier.Passed() - p.told
			p.told += d.Requests
		}
		r.end = &d
	}
	p.router.tellDoor(ctx, p.sandbox, r)
}
