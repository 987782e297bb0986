package requests

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/expression"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// searchTime is how long patterns may be looked for in one request. A body of the longest kind, of random
// bytes, for a simple pattern takes half of it on a slow machine.
const searchTime = time.Minute

// errSearchTime is why a search ends that takes longer. A request's own end is another cause.
var errSearchTime = errors.New("searchTime is over")

// patternSearch looks for patterns, as long as its context lasts.
type patternSearch struct {
	ctx      context.Context //nolint:containedctx // of the one request that is searched
	patterns []*expression.Expression
}

// searchFor begins to look for patterns in a request. end is to be called.
func searchFor(r *http.Request, patterns []*expression.Expression) (s patternSearch, end func()) {
	ctx, end := context.WithTimeoutCause(r.Context(), searchTime, errSearchTime)
	return patternSearch{ctx, patterns}, end
}

// findIn looks for the patterns in parts of a request, as they are written and as servers may read
// them.
func (s patternSearch) findIn(parts []requestparts.Part) *Refusal {
	for _, part := range parts {
		written := []string{part.Text}
		if part.Name != "" && part.Text != part.Name {
			written = []string{part.Name + ": " + part.Text}
		}
		if part.Caseless {
			written = append(written, strings.ToLower(part.Text), strings.ToUpper(part.Text))
		}
		for _, text := range written {
			if refusal := s.findText(text); refusal != nil {
				return refusal
			}
		}
	}
	return nil
}

// findInBody looks for the patterns in all that a server may take a body for, and in what came
// behind it.
func (s patternSearch) findInBody(r *http.Request, body []byte) (refusal *Refusal) {
	if refusal = s.findIn(requestparts.Trailer(r.Trailer)); refusal != nil {
		return refusal
	}
	unread := requestparts.BodyOf(r.Header).Each(body, func(text []byte) (more bool) {
		refusal = s.findText(string(text))
		return refusal == nil
	})
	if refusal == nil && unread != "" {
		return unsearched(unread)
	}
	return refusal
}

// findText looks for the patterns in one text, also as servers read it that leave out bytes that are
// no UTF-8, or take overlong forms for letters. Each of these ways takes as long as the first one.
func (s patternSearch) findText(written string) *Refusal {
	valid := true
	for text := range meanings(written, asWritten) {
		valid = valid && utf8.ValidString(text)
		if refusal := s.findValid(strings.ToValidUTF8(text, "\uFFFD")); refusal != nil {
			return refusal
		}
	}
	if valid {
		return nil
	}
	for _, read := range []func(string) string{withoutInvalid, withoutOverlong} {
		for text := range meanings(written, read) {
			if refusal := s.findValid(text); refusal != nil {
				return refusal
			}
		}
	}
	return nil
}

// findValid looks for the patterns in UTF-8.
func (s patternSearch) findValid(text string) *Refusal {
	over := func() bool { return s.ctx.Err() != nil }
	for i, pattern := range s.patterns {
		found, _, givenUp := pattern.FindUntil(text, over)
		switch {
		case givenUp && errors.Is(context.Cause(s.ctx), errSearchTime):
			return &Refusal{Rule: door.RuleHostBody, Reason: "to look for the policy's deny_patterns in a request takes longer than " + searchTime.String() + "; send less at a time", Status: http.StatusRequestEntityTooLarge}
		case givenUp:
			return &Refusal{Reason: "the connection has ended"}
		case found:
			return &Refusal{Rule: door.RuleHostPattern, Reason: "a request has in it what " + ordinal(i) + " of the policy's deny_patterns is about"}
		}
	}
	return nil
}
