package egress

import (
	"context"
	"errors"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// connectTCP carries a connection whose ends speak what they like. The host may be the one
// that speaks first, so it is dialled at once, and the guest is told that it is connected
// only when it is: to say no afterwards there are no words in an unknown protocol.
func (s *guestStream) connectTCP(ctx context.Context, p *passage, id string) {
	far, err := p.reachHost(ctx, door.ProtocolTCP)
	if s.conn.SetDeadline(time.Now().Add(s.router.limits.OpenTime)) != nil { // it was for less than that took
		return
	}
	if err != nil {
		reason := "the connection has ended"
		if refused, ok := errors.AsType[*errRefused](err); ok {
			reason = refused.sentence
		}
		s.replyOpen(channel.Reply{Error: reason})
		return
	}
	if s.replyOpen(channel.Reply{OK: true, Text: id}) && s.conn.SetDeadline(time.Time{}) == nil {
		p.relayBoth(far, p.guest)
	}
}

// otherwise is what a refusal of a protocol tells to do on a port.
func otherwise(port int) string {
	if port == 80 || port == 443 {
		return ""
	}
	return "; other protocols need an entry with tcp: true"
}
