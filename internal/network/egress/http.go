package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/tlshello"
)

// carryHTTP carries a connection of plain HTTP, of which some was said.
func (p *passage) carryHTTP(ctx context.Context, first []byte) {
	p.carryRequests(ctx, first, nil)
}

// endTLS answers a ClientHello for the host, and carries the requests inside.
func (p *passage) endTLS(ctx context.Context, said []byte, client tlshello.Hello) {
	leaf, err := p.hostLeaf(ctx)
	if err != nil {
		p.turnAway(ctx, err)
		return
	}
	framed := client.HTTP2 && (!p.git || !client.HTTP1) // git's pushes would wait for ever (door.NameAnswer.Git)
	p.carryRequests(ctx, said, &requests.Ended{Certificate: leaf, HTTP1: client.HTTP1, HTTP2: framed, Roots: p.hostRoots})
}

// hostLeaf is the certificate for the host, under the authority that the sandbox trusts.
func (p *passage) hostLeaf(ctx context.Context) (tls.Certificate, error) {
	cert, err := p.router.door.Leaf(ctx, door.LeafAsk{Sandbox: p.sandbox, Name: p.name})
	if errors.Is(err, fault.ErrForbidden) {
		return tls.Certificate{}, &errRefused{sentence: p.refuseConnection(ctx, door.RuleHostTLS, fault.Sentence(err, "it has no certificate"))}
	}
	var leaf tls.Certificate
	if err == nil {
		leaf, err = tls.X509KeyPair(cert.ChainPEM, cert.KeyPEM)
	}
	if err != nil {
		p.router.log.Error("there is no certificate for a host whose requests are judged", "sandbox", p.sandbox, "name", p.name, "error", err)
		return tls.Certificate{}, &errRefused{sentence: "there is no certificate for " + p.name + " now"}
	}
	return leaf, nil
}

// carryRequests carries a connection request by request. ended nil: it is plain HTTP.
func (p *passage) carryRequests(ctx context.Context, said []byte, ended *requests.Ended) {
	if err := p.guest.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	protocol := door.ProtocolHTTP
	if ended != nil {
		protocol = door.ProtocolHTTPS
	}
	config := requests.Config{
		Connection: requests.Connection{Sandbox: p.sandbox, Name: p.name, Port: p.port, TLS: ended != nil, Searches: p.router.guests.searches(p.sandbox), Computing: p.router.guests.computing(p.sandbox), Memory: p.router.guests.memory(p.sandbox)},
		Dial:       func(ctx context.Context) (net.Conn, error) { return p.dialHTTP(ctx, protocol) },
		Admit:      func() error { return refusalOf(p.admitProtocol(ctx, protocol)) },
		Ended:      ended,
		Refuse:     p.refuseRequest,
		Full:       p.tellDone,
		HeadTime:   p.router.limits.HelloTime,
		AwaitTime:  p.router.limits.Idle,
	}
	if p.judged {
		config.Judge, config.AwaitPush = p.judgeRequest, p.awaitPush
	}
	config.Exchange = p.exchange(ctx, config.Connection)
	carrier := requests.New(config)
	p.mu.Lock()
	p.carrier = carrier
	p.mu.Unlock()
	carrier.Serve(ctx, p.guest, io.MultiReader(bytes.NewReader(said), p.guest))
}

// exchange is what sees to the connection's requests; nil: nothing does.
func (p *passage) exchange(ctx context.Context, of requests.Connection) requests.Exchange {
	if p.router.exchanges == nil {
		return nil
	}
	exchange, err := p.router.exchanges.Exchange(ctx, of)
	if err != nil {
		p.router.log.Error("nothing can see to the requests of a connection", "sandbox", p.sandbox, "name", p.name, "error", err)
		return closed{err}
	}
	return exchange
}

// closed is an exchange that lets nothing through.
type closed struct{ err error }

// Outgoing implements requests.Exchange.
func (c closed) Outgoing(*http.Request) error { return c.err }

// Incoming implements requests.Exchange.
func (c closed) Incoming(*http.Response) error { return c.err }

func (p *passage) dialHTTP(ctx context.Context, protocol string) (net.Conn, error) {
	far, err := p.reachHost(ctx, protocol)
	if err != nil {
		return nil, refusalOf(err) // and no metered that is nil
	}
	return far, nil
}

// refusalOf is an error of who waits for a connection, as requests have it. A refusal is on record by then.
func refusalOf(err error) error {
	refused, ok := errors.AsType[*errRefused](err)
	if !ok {
		return err
	}
	refusal := &requests.Refusal{Reason: refused.sentence, Recorded: true}
	if refused.unreached {
		refusal.Status = http.StatusBadGateway
	}
	return refusal
}

// judgeRequest asks the door about a request.
func (p *passage) judgeRequest(ctx context.Context, r policy.Request) (requests.Judgement, error) {
	if full := p.router.reports.whyFull(p.sandbox); full != "" {
		return requests.Judgement{}, &requests.Refusal{Rule: door.RuleHostQuota, Reason: full, Status: http.StatusServiceUnavailable, Recorded: true}
	}
	ctx, cancel := recording(ctx) // a refusal is on record, whether its client waits for it or not
	defer cancel()
	a, err := p.router.door.Request(ctx, door.RequestAsk{
		Sandbox: p.sandbox, Name: p.name, Port: p.port, Method: r.Method, Path: r.Path,
		Query: strings.ToValidUTF8(r.Query[:min(len(r.Query), door.MaxQuery)], "\uFFFD"),
	})
	switch {
	case err != nil:
		p.router.log.Error("a request could not be judged", "sandbox", p.sandbox, "error", err)
		return requests.Judgement{}, err
	case !a.Answer.Decision.Allowed():
		return requests.Judgement{}, &requests.Refusal{Rule: a.Answer.Decision.Rule, Reason: withRequest(a.Answer.Decision.Reason, a.Answer.RequestID), Recorded: true}
	}
	return requests.Judgement{Rule: a.Answer.Decision.Rule, Terms: a.Terms}, nil
}

// refuseRequest records that a request is refused, and gives the sentence for the guest.
func (p *passage) refuseRequest(ctx context.Context, r *requests.Refusal, request string) string {
	return p.recordRefusal(ctx, door.HostRefusal{Sandbox: p.sandbox, Name: p.name, Port: p.port, Rule: r.Rule, Reason: r.Reason, Request: request})
}

// hostRoots vouch for the host, once it was dialled; nil: this machine's do.
func (p *passage) hostRoots() *x509.CertPool {
	p.reaching.Lock()
	defer p.reaching.Unlock()
	return p.target.Roots
}

// tellDone tells the door what became of the connection's requests that have ended since
// it was told last.
func (p *passage) tellDone(ctx context.Context) {
	p.mu.Lock()
	carrier := p.carrier
	p.mu.Unlock()
	if carrier == nil {
		return
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	seq := p.last
	p.mu.Unlock()
	if seq == 0 {
		return // none was sent
	}
	p.router.tellDoor(ctx, p.sandbox, report{seq: seq, requests: carrier.Done()})
}
