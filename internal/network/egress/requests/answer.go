package requests

import (
	"errors"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/departure"
)

// sender sends requests that were judged.
type sender struct {
	carrier *Carrier
	to      http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The request that it gets stays as it is: whoever
// tells of it has no secret to tell.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	exchange := s.carrier.config.Exchange
	leaving, err := departure.Of(r, func(sent *http.Request) error {
		if exchange != nil {
			if err := exchange.Outgoing(sent); err != nil {
				return err
			}
		}
		releaseWithBody(sent)
		return nil
	})
	if err != nil {
		return nil, unready(err)
	}
	s.carrier.passed.Add(1)
	var answer *http.Response
	if err = s.carrier.admitHost(); err == nil {
		answer, err = leaving.Send(s.to)
	}
	if errors.Is(err, httphead.ErrFull) {
		err = placeOfRequest(r).refuseFull()
	}
	if err != nil {
		watchSent(r, nil, err)
		return nil, err
	}
	watchSent(r, answer, nil)
	answer.Header.Del("Alt-Svc") // there is no other way to the host
	if exchange != nil {
		if err := exchange.Incoming(answer); err != nil {
			_ = answer.Body.Close() // nobody reads it
			return nil, unready(err)
		}
	}
	// Of an upgraded connection the proxy reads and writes it in goroutines of its own.
	answer.Body = safego.ShieldBody(answer.Body)
	return answer, nil
}

// admitHost has the connection to the host judged, unless it was before the client's handshake and has failed: that is on record as far as it is
// a refusal, and dialTLS gives it to the first request.
func (c *Carrier) admitHost() error {
	if c.config.Admit == nil || c.first != nil && c.first.hasFailed() {
		return nil
	}
	return c.config.Admit()
}

// once is an answer's writer without the host's 100 (Continue): the server says so by itself
// when the body is first read, and twice is once too often for some clients.
type once struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (o once) WriteHeader(status int) {
	if status != http.StatusContinue {
		o.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for http.ResponseController.
func (o once) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// unready is what an exchange's error is to the client.
func unready(err error) error {
	if refusal, ok := asRefusal(err); ok {
		return refusal
	}
	return fault.Wrap(fault.ErrUnavailable, err, "%s", fault.Sentence(err, "the request could not be made ready to be sent"))
}

// answerFailure answers a request that got no answer, or one that can't be handed on.
func (c *Carrier) answerFailure(w http.ResponseWriter, r *http.Request, err error) {
	if u, _ := r.Context().Value(underwayKey{}).(*underway); u != nil {
		u.unanswered(err)
	}
	refusal, ok := asRefusal(err)
	if !ok {
		refusal = &Refusal{Reason: fault.Sentence(err, "the host did not answer the request"), Status: http.StatusBadGateway, Recorded: true}
	}
	httphead.Unsent(w)
	c.answerRefusal(w, r, refusal)
}

// answerRefusal answers with why a request is not passed on, which is on record by then. The
// connection goes on unless the client has shown that it does not know whom it talks to.
func (c *Carrier) answerRefusal(w http.ResponseWriter, r *http.Request, refusal *Refusal) {
	request := toldOf(r.Method, maxMethod) + " " + toldOf(r.URL.EscapedPath(), maxTold)
	if r.ProtoMajor == 1 && (refusal.Rule == door.RuleHostHTTP || c.config.Judge == nil) {
		w.Header().Set("Connection", "close")
	}
	sentence := refusal.Reason
	if !refusal.Recorded && refusal.Rule != "" {
		sentence = c.config.Refuse(r.Context(), refusal, request)
	}
	status := refusal.Status
	if status == 0 {
		status = http.StatusForbidden
	}
	if refusal.Rule != "" {
		sentence += " (rule " + refusal.Rule + ")"
	}
	if refusal.pushed != nil && refusePush(w, r, refusal.pushed, "cofferdam: "+sentence) {
		return
	}
	http.Error(w, "cofferdam: "+sentence, status)
}
