package egress

import (
	"context"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// maxWhy bounds the text of `cofferdam why`: a reply is one JSON frame.
const maxWhy = 60 << 10

// answerWhy answers with the run's last refusals, or with those under one request's id,
// for people or as JSON.
func (s *guestStream) answerWhy(ctx context.Context, request string, asJSON bool) {
	refusals, err := s.router.door.Refusals(ctx, s.sandbox, request, s.router.limits.Refusals)
	if err != nil {
		s.router.log.Error("refusals could not be read", "sandbox", s.sandbox, "error", err)
		s.replyOpen(channel.Reply{Error: "the refusals of this run could not be read"})
		return
	}
	if request != "" && len(refusals) == 0 {
		s.replyOpen(channel.Reply{Code: channel.CodeNotFound, Error: "nothing was refused here under the id " + refusal.Line(request) + "; cofferdam why tells the last refusals"})
		return
	}
	text, err := explainRefusals(refusals, asJSON)
	if err != nil {
		s.replyOpen(channel.Reply{Error: "the refusals of this run could not be written"})
		return
	}
	s.replyOpen(channel.Reply{OK: true, Text: text})
}

// explainRefusals writes refusals in their order; if they are too many, the alarms and
// the last.
func explainRefusals(refusals []door.Refusal, asJSON bool) (string, error) {
	for {
		text, err := explainAll(refusals, asJSON)
		if err != nil || len(text) <= maxWhy || len(refusals) == 0 {
			return text, err
		}
		alarms := 0 // they come first, and go last
		for alarms < len(refusals)/2 && refusals[alarms].Alarm {
			alarms++
		}
		refusals = slices.Delete(slices.Clone(refusals), alarms, alarms+(len(refusals)-alarms+1)/2)
	}
}

func explainAll(refusals []door.Refusal, asJSON bool) (string, error) {
	if asJSON {
		return refusal.JSON(refusals)
	}
	return refusal.Text(refusals), nil
}
