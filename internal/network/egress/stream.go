package egress

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/budget"
)

// guestStream is one stream of a guest.
type guestStream struct {
	router  *Router
	conn    net.Conn
	sandbox string
}

func (s *guestStream) serveStream(ctx context.Context, open channel.Open) {
	switch open.Kind {
	case channel.OpenDNS:
		s.resolveName(ctx, open.Name)
	case channel.OpenTCP:
		s.connect(ctx, open.Name, open.Port)
	case channel.OpenHangUp:
		gone := s.router.guests.hangUp(s.sandbox, open.Stream)
		s.replyOpen(channel.Reply{OK: true})
		if gone != nil {
			s.seeOff(ctx, gone)
		}
	case channel.OpenWhy:
		s.answerWithRoom(ctx, func() { s.answerWhy(ctx, open.ID, open.JSON) })
	case channel.OpenRequest:
		s.answerWithRoom(ctx, func() { s.request(ctx, open.Request, open.JSON) })
	default:
		s.unknown(ctx, "a stream of this kind does not exist")
	}
}

// seeOff ends a connection whose client has gone once all that the client has said has come: the keeper passes it on
// beside the hang-up, with the client's own end behind it. If some of it does not come in time nobody reads it, and that is on record.
func (s *guestStream) seeOff(ctx context.Context, gone *carriage) {
	_ = s.conn.Close() // who waits for the answer has it
	late := time.NewTimer(s.router.limits.LastWords)
	defer late.Stop()
	select {
	case <-gone.over:
		return
	case <-ctx.Done():
		return
	case <-late.C:
	}
	if hungUp(gone.conn) { // its end is here, behind all that was said
		return
	}
	gone.cutReading()
	s.recordFailure(ctx, door.RuleUnheard, fmt.Sprintf("a client has hung up, and what it had said did not come to the gateway whole within %s: the rest was passed on to no host, and not judged", s.router.limits.LastWords))
}

// answerWithRoom does what answers with a text, which takes as much as a connection.
func (s *guestStream) answerWithRoom(ctx context.Context, answer func()) {
	leave, problem := s.router.guests.enterAnswered(s.sandbox)
	if problem != "" {
		s.replyOpen(channel.Reply{Error: problem})
		s.crowded(ctx)
		return
	}
	defer leave()
	answer()
}

// unknown refuses a stream that asks for nothing that there is. Its other words are not worth keeping.
func (s *guestStream) unknown(ctx context.Context, problem string) {
	s.replyOpen(channel.Reply{Error: problem})
	if s.router.guests.takeName(s.sandbox, problemMark+problem) {
		s.recordFailure(ctx, "", problem)
	}
}

// recordFailure records something of the sandbox that can't be answered, whoever waits for that.
func (s *guestStream) recordFailure(ctx context.Context, rule, reason string) {
	_ = s.recordOrFail(ctx, door.Failure{Sandbox: s.sandbox, ResolvedBy: policy.ByCanonical, Rule: rule, Reason: reason}) // the operator is told
}

// recordOrFail records a failure, and returns the error to a caller that tries again.
func (s *guestStream) recordOrFail(ctx context.Context, f door.Failure) error {
	ctx, cancel := recording(ctx)
	defer cancel()
	_, err := s.router.door.Failed(ctx, f)
	if err != nil {
		s.router.log.Error("what a sandbox was refused could not be recorded", "sandbox", s.sandbox, "error", err)
	}
	return err
}

// replyOpen answers the stream's open; a guest that is gone needs none.
func (s *guestStream) replyOpen(r channel.Reply) bool {
	if err := channel.NewWriter(s.conn).WriteJSON(channel.FrameReply, r); err != nil {
		s.router.log.Debug("a stream could not be answered", "sandbox", s.sandbox, "error", err)
		return false
	}
	return true
}

// resolveName answers a DNS question. A name that is not allowed does not exist. One that waits
// for a person does, see passage.awaitApproval.
func (s *guestStream) resolveName(ctx context.Context, name string) {
	if s.router.registry.IsRegistry(name) {
		s.replyOpen(channel.Reply{OK: true, DNS: &channel.DNSAnswer{Exists: true, Ports: []int{registryPort}}})
		return
	}
	if name == channel.ToolsHost {
		s.replyOpen(channel.Reply{OK: true, DNS: &channel.DNSAnswer{Exists: true, Ports: []int{toolsPort}}})
		return
	}
	a, reason := s.judgeName(ctx, name, 0)
	s.replyOpen(channel.Reply{OK: true, Error: reason, DNS: &channel.DNSAnswer{Exists: reason == "", Ports: a.Ports}})
}

// connect opens a TCP stream to a registry, or to a host that the policy has.
func (s *guestStream) connect(ctx context.Context, name string, port int) {
	if name == channel.ToolsHost && port == toolsPort {
		s.serveTools(ctx)
		return
	}
	if !s.router.registry.IsRegistry(name) || port != registryPort {
		a, reason := s.judgeName(ctx, name, port)
		if reason != "" {
			s.replyOpen(channel.Reply{Error: reason})
			return
		}
		s.connectHost(ctx, name, port, a)
		return
	}
	leave, problem := s.router.guests.enterAnswered(s.sandbox)
	if problem != "" {
		s.replyOpen(channel.Reply{Error: (&passage{router: s.router, sandbox: s.sandbox, name: name, port: port}).refuseConnection(ctx, door.RuleHostMemory, problem)})
		return
	}
	defer leave()
	id, _, forget := s.router.guests.carryConn(s.sandbox, s.conn)
	defer forget()
	if !s.replyOpen(channel.Reply{OK: true, Text: id}) {
		return
	}
	if err := s.conn.SetDeadline(time.Time{}); err != nil {
		return
	}
	s.router.registry.ServeRegistry(accounted{s.conn, s.router.guests.memory(s.sandbox)}, s.sandbox)
}

// accounted is a connection with its sandbox's memory, of which what is kept for answers is taken.
type accounted struct {
	net.Conn
	*budget.Budget
}

// judgeName asks the door about a name and gives how it may be connected to, or the reason why
// it may not; what waits for a person may, and is asked about then. Past the cap on refused
// names the door is asked without a record.
func (s *guestStream) judgeName(ctx context.Context, name string, port int) (a door.NameAnswer, reason string) {
	if problem := checkName(name, port); problem != "" {
		if s.router.guests.takeName(s.sandbox, problemMark+problem) {
			s.recordMalformed(ctx, problem)
		}
		return a, problem
	}
	look := !s.router.guests.mayName(s.sandbox, name)
	a, err := s.router.door.Name(ctx, door.NameAsk{Sandbox: s.sandbox, Name: name, Port: port, Look: look})
	switch {
	case err != nil:
		s.router.log.Error("a name could not be judged", "sandbox", s.sandbox, "error", err)
		return a, "the name could not be judged"
	case a.Answer.Decision.Allowed(), a.Answer.Decision.Effect == policy.Hold:
		s.router.guests.carried(s.sandbox, a.Carried)
		return a, ""
	case look:
		return a, "this run has asked for too many different names"
	}
	s.router.guests.takeName(s.sandbox, name)
	return a, withRequest(a.Answer.Decision.Reason, a.Answer.RequestID)
}

// recordMalformed records a name that is none, without its text: what a guest
// writes where a name should be is not worth keeping.
func (s *guestStream) recordMalformed(ctx context.Context, problem string) {
	s.recordFailure(ctx, "", "a name asked for: "+problem)
}
