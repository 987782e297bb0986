package egress

import (
	"context"
	"net"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// awaitPush waits for a person's answer about a push; nil: it may be sent. If nobody has
// answered yet the connection to the host ends meanwhile, since the sandbox may be frozen
// for hours, and another one is made for the push.
func (p *passage) awaitPush(ctx context.Context, push requests.Push) error {
	ask := door.PushAsk{Sandbox: p.sandbox, Name: p.name, Port: p.port, Path: push.Path, Change: push.Change, Size: push.Size}
	a, err := p.router.door.AwaitPush(ctx, ask)
	if err == nil && a.Decision.Effect == policy.Hold {
		p.restConnection(ctx)
		ask.Wait = true
		a, err = p.waitForPush(ctx, ask)
	}
	switch {
	case ctx.Err() != nil:
		return net.ErrClosed // the guest has gone meanwhile
	case err != nil:
		p.router.log.Error("a push could not be judged", "sandbox", p.sandbox, "error", err)
		return &requests.Refusal{Reason: "the push could not be judged", Recorded: true}
	case a.Decision.Allowed():
		return nil
	case a.Decision.Effect == policy.Hold && a.Approval != "":
		return &requests.Refusal{
			Rule: a.Decision.Rule, Recorded: true,
			Reason: a.Decision.Reason + "; request " + a.Approval + "; a person approves it on the host: " + door.ApproveCommand(a.Approval) + "; push again then",
		}
	}
	return &requests.Refusal{Rule: a.Decision.Rule, Reason: withRequest(a.Decision.Reason, a.RequestID), Recorded: true}
}

// waitForPush waits until somebody has answered, or the client has gone.
func (p *passage) waitForPush(ctx context.Context, ask door.PushAsk) (door.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait() // or it would change a deadline that is set next
	defer cancel()
	safego.In(&watching, func() { p.missGuest(ctx, cancel) })
	return p.router.door.AwaitPush(ctx, ask)
}

// restConnection ends the connection to the host, and leaves the guest's as it is: the next request
// has the host resolved, judged and connected to anew.
func (p *passage) restConnection(ctx context.Context) {
	p.reaching.Lock()
	defer p.reaching.Unlock()
	p.closeFar()
	p.carrier.Rest()
	p.disconnected(ctx)
	p.target = outbound.Target{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problem = "" // it was that connection's
}
