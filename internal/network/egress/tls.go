package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/tlshello"
)

// firstOfTLS is the first byte of a handshake.
const firstOfTLS = 0x16

// denyAlert is an alert of TLS: access denied, fatal. Clients print it.
func denyAlert() []byte { return []byte{0x15, 3, 1, 0, 2, 2, 49} }

// carryTLS lets a connection through that names its host, and does not name another when
// the server has it say its ClientHello again. The inside stays the client's and the server's.
func (p *passage) carryTLS(ctx context.Context, said []byte) {
	client := &tlshello.Client{}
	whole, rest, err := p.readHello(ctx, client, said)
	if err != nil {
		p.turnAway(ctx, err)
		return
	}
	if p.judged {
		p.endTLS(ctx, slices.Concat(whole, rest), client.Hello())
		return
	}
	far, err := p.reachHost(ctx, door.ProtocolTLS)
	if err == nil {
		_, err = far.Write(whole)
	}
	if err == nil {
		rest, err = p.passServerHello(ctx, far, rest)
	}
	if err != nil {
		p.turnAway(ctx, err)
		return
	}
	if p.guest.SetReadDeadline(time.Time{}) == nil {
		p.relayBoth(far, io.MultiReader(bytes.NewReader(rest), p.guest))
	}
}

// readHello reads a ClientHello, of which some was said, and checks what it names. rest is what
// came behind it.
func (p *passage) readHello(ctx context.Context, client *tlshello.Client, said []byte) (whole, rest []byte, err error) {
	taken, done, err := client.Take(said)
	buf := make([]byte, 4<<10)
	for !done && err == nil {
		n, failure := p.guest.Read(buf)
		said = append(said, buf[:n]...)
		used := 0
		used, done, err = client.Take(buf[:n])
		if taken += used; !done && err == nil {
			err = brokeOff(ctx, said, failure)
		}
	}
	if err == nil {
		err = p.checkHello(client.Hello())
	}
	return said[:taken], said[taken:], err
}

// brokeOff is why a ClientHello that is not whole is not read on; nil: it is. A client that goes in the middle of one
// has begun to say which host it means. ctx has ended if it is the gateway that has ended the connection.
func brokeOff(ctx context.Context, said []byte, failure error) error {
	if failure == nil || len(said) == 0 || errors.Is(failure, os.ErrDeadlineExceeded) || ctx.Err() != nil {
		return failure
	}
	return &tlshello.Error{What: "the ClientHello broke off before its end"}
}

// checkHello returns an error unless a ClientHello means this connection's host.
func (p *passage) checkHello(h tlshello.Hello) error {
	switch {
	case h.Encrypted:
		return &tlshello.Error{What: "the ClientHello hides another one (ECH), or pretends to, so it does not tell which host is meant"}
	case h.Name == "":
		return &tlshello.Error{What: "the ClientHello names no host"}
	case h.Name != p.name:
		return &tlshello.Error{What: fmt.Sprintf("the ClientHello names %s, and the connection is to %s", h.Name, p.name)}
	}
	return nil
}

// passServerHello passes the server's first message on. If that asks for another ClientHello, the
// guest's next is that, and must name the same host. Until then nothing else of the
// guest's goes to the server: what it says unasked would be read as its answer.
func (p *passage) passServerHello(ctx context.Context, far *metered, rest []byte) ([]byte, error) {
	late := safego.After(p.router.limits.GreetTime, func() { p.stopConnection("the host's handshake did not begin in time") })
	defer late.Stop()
	var server tlshello.Server
	buf := make([]byte, 4<<10)
	for done := false; !done; {
		n, err := far.Read(buf)
		if err != nil && n == 0 {
			return nil, err
		}
		if done, err = server.Take(buf[:n]); err != nil {
			return nil, err
		}
		if _, err := p.guest.Write(buf[:n]); err != nil {
			return nil, err
		}
	}
	if !server.Retry() {
		return rest, nil
	}
	if err := p.guest.SetReadDeadline(time.Now().Add(p.router.limits.HelloTime)); err != nil {
		return nil, err
	}
	whole, rest, err := p.readHello(ctx, tlshello.Again(), rest)
	if err == nil {
		_, err = far.Write(whole)
	}
	return rest, err
}

// turnAway ends a connection whose handshake is not passed on, and records why, unless
// that was done or an end has just gone.
func (p *passage) turnAway(ctx context.Context, err error) {
	reason := tlshello.Sentence(err)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		reason = "the ClientHello did not come in time"
	}
	refused, isRefusal := errors.AsType[*errRefused](err)
	switch {
	case isRefusal:
		reason = refused.sentence
	case reason != "":
		reason = p.refuseConnection(ctx, door.RuleHostTLS, reason)
	default:
		return
	}
	p.mu.Lock()
	if p.problem == "" {
		p.problem = reason
	}
	p.mu.Unlock()
	_, _ = p.guest.Write(denyAlert()) // it may have gone
}
