package egress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// requestTime bounds how long a guest's request for packages is looked up.
const requestTime = 2 * time.Minute

// request passes an agent's request for packages on, to be looked up, judged and
// filed. Nothing is approved on this way.
func (s *guestStream) request(ctx context.Context, asked *channel.Request, asJSON bool) {
	if asked == nil {
		s.replyOpen(channel.Reply{Error: "a request without packages"})
		return
	}
	if err := s.conn.SetDeadline(time.Now().Add(requestTime)); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	all, err := s.router.registry.Propose(ctx, s.sandbox, *asked)
	if err != nil {
		s.router.log.Warn("a request for packages could not be taken", "sandbox", s.sandbox, "error", err)
		s.replyOpen(channel.Reply{Error: sentenceOf(err)})
		return
	}
	text, err := proposedText(all, asJSON)
	if err != nil {
		s.replyOpen(channel.Reply{Error: "the answer could not be written"})
		return
	}
	s.replyOpen(channel.Reply{OK: true, Text: text})
}

// sentenceOf is what a guest may read of an error.
func sentenceOf(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Sentence
	}
	return "the request could not be taken; ask again later"
}

func proposedText(all []door.Proposed, asJSON bool) (string, error) {
	if asJSON {
		b, err := json.MarshalIndent(all, "", "  ")
		return string(b) + "\n", err
	}
	var b strings.Builder
	waiting := false
	for _, p := range all {
		what := refusal.Line(p.Package.String())
		if p.Package.Name == "" {
			what = "?"
		}
		switch p.Effect {
		case "allow":
			fmt.Fprintf(&b, "allowed  %s: %s\n", what, refusal.Line(p.Reason))
		case "hold":
			fmt.Fprintf(&b, "waits    %s: %s\n", what, refusal.Line(p.Reason))
			if p.Approval != "" {
				waiting = true
				fmt.Fprintf(&b, "         request %s; a person approves it on the host: %s\n", p.Approval, door.ApproveCommand(p.Approval))
			}
		default:
			fmt.Fprintf(&b, "refused  %s: %s\n", what, refusal.Line(p.Reason))
		}
	}
	if waiting {
		b.WriteString("What waits can be installed once it is approved; the install itself waits or fails as the policy says.\n")
	}
	return b.String(), nil
}
