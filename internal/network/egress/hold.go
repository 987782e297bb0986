package egress

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// awaitApproval waits for a person's answer about a name that is held; nil: it may go on.
//
// It is the connection that waits, where its client has said which host it
// means. The DNS question was answered with an address of the sandbox's own loopback,
// since resolvers give up after five seconds and clients take that for an answer; those
// that have connected wait for a minute and more, most for ever. The name itself was not
// looked up: a question to the world's resolvers brings the name's owner whatever the name
// spells, so nobody asks one before a person has said yes.
func (p *passage) awaitApproval(ctx context.Context, protocol string) error {
	if !p.held {
		return nil
	}
	_ = p.guest.SetReadDeadline(time.Time{}) // one who has gone has asked all the same, and missGuest finds that out
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait() // or it would take back a deadline that is set next
	defer cancel()
	safego.In(&watching, func() { p.missGuest(ctx, cancel) })
	a, err := p.router.door.AwaitHost(ctx, door.HostAsk{Sandbox: p.sandbox, Name: p.name, Port: p.port, Protocol: protocol})
	switch {
	case ctx.Err() != nil:
		return net.ErrClosed // the guest has gone meanwhile
	case err != nil:
		p.router.log.Error("a held connection could not be judged", "sandbox", p.sandbox, "error", err)
		return &errRefused{sentence: "the connection could not be judged"}
	case a.Decision.Allowed():
		return nil
	case a.Decision.Effect == policy.Hold && a.Approval != "":
		return &errRefused{sentence: a.Decision.Reason + "; request " + a.Approval + "; a person approves it on the host: " + door.ApproveCommand(a.Approval) + "; try again then"}
	}
	return &errRefused{sentence: withRequest(a.Decision.Reason, a.RequestID)}
}

// missGuest cancels a wait whose client has gone: it waits for the host's first word, so
// nobody reads what would tell.
func (p *passage) missGuest(ctx context.Context, cancel context.CancelFunc) {
	tick := time.NewTicker(p.router.limits.Look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p.guest.SetReadDeadline(time.Time{}) != nil || hungUp(p.guest) {
			cancel()
			return
		}
	}
}
