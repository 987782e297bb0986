package exchange

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// gotKey is under what a request's context has what it got.
type gotKey struct{}

// got is what a request got that its answer has to be judged by.
type got struct {
	said    Request  // what is said of it on record
	secrets []string // by name
	parts   bool     // it asked for a part, and parts can be judged: see fillRequest
	// known are, by name, the secrets that its host may say: those that it got, and those that the host gets by
	// other requests. A host keeps what one request brings, and somebody inside asks for it by another, without.
	known []string
}

// gotByRequest is what a request got, and what the host's others get.
func (e *Exchange) gotByRequest(said Request, uses []Use) got {
	g := got{said: said}
	for _, u := range uses {
		if !slices.Contains(g.secrets, u.Secret) {
			g.secrets = append(g.secrets, u.Secret)
		}
	}
	g.known = slices.Clone(g.secrets)
	for _, c := range e.ofHost {
		if !slices.Contains(g.known, c.Secret) {
			g.known = append(g.known, c.Secret)
		}
	}
	for _, name := range e.kept {
		if !slices.Contains(g.known, name) {
			g.known = append(g.known, name)
		}
	}
	return g
}

// rememberGot has a request's answer know what it got.
func rememberGot(r *http.Request, g got) {
	*r = *r.WithContext(context.WithValue(r.Context(), gotKey{}, g))
}

// askReadable has a request ask for an answer in which secrets can be found: whole, encoded in no
// way, and in the letters that the host is used to. Of a signed one that stays as it is which may be signed, but for a part that it
// asks for where none can be judged: see fillRequest.
func askReadable(r *http.Request, signed, parts bool) {
	for name := range r.Header {
		if slices.Contains([]string{"A-Im", "Sec-Websocket-Extensions", "Grpc-Accept-Encoding", "Connect-Accept-Encoding", "Available-Dictionary"}, http.CanonicalHeaderKey(name)) {
			delete(r.Header, name)
		}
	}
	r.Header.Set("Accept-Encoding", readable)
	if !parts {
		r.Header.Del("Range")
	}
	if signed {
		return
	}
	for _, name := range []string{"If-Range", "Accept-Charset"} {
		r.Header.Del(name)
	}
	for i, value := range r.Header["Accept"] {
		r.Header["Accept"][i] = namedCharset.ReplaceAllString(value, "")
	}
}

// namedCharset finds what an Accept says of the letters that an answer is to be written in: a secret
// is found in those that have ASCII as it is.
var namedCharset = regexp.MustCompile(`(?i)\s*;\s*charset\*?[0-9]*\*?\s*=\s*(?:"[^"]*"?|[^;,]*)`)

// Incoming takes the secrets out of a host's answer. An error is a Refused.
func (e *Exchange) Incoming(a *http.Response) error {
	asked := gotOfAnswer(a)
	if a.StatusCode == http.StatusUnauthorized && len(asked.secrets) > 0 {
		e.keeper.Declined(a.Request.Context(), asked.secrets)
	}
	if len(asked.secrets) > 0 && e.runs.stoppedTooOften(e.run) {
		return &Refused{Sentence: tooManyStops}
	}
	if err := e.hearAnswer(contextOf(a)); err != nil {
		return err
	}
	sought, why, part := e.sought(), "", ""
	if e.seeks {
		if why = unreadable(a, asked.parts); why == "" && asked.parts {
			part = unreadable(a, false)
		}
	}
	if part != "" && e.runs.knowsValue(e.run, asked.known) {
		return unreadableAnswer(part)
	}
	if e.seeks && len(sought.all) > 0 {
		if why != "" {
			return unreadableAnswer(why)
		}
		a.Status = sought.masked(a.Status)
		maskHeader(sought, a.Header)
		maskHeader(sought, a.Trailer) // what comes behind the body is announced before it
	}
	if both, is := a.Body.(io.ReadWriteCloser); is && a.StatusCode == http.StatusSwitchingProtocols {
		a.Body = e.messages(a, both)
		return nil
	}
	a.Body = &incoming{from: a.Body, arrivals: arrivals{from: a.Body, patience: asked.patience()}, answer: a, exchange: e, unreadable: why, part: part, scan: e.scanOf(framingOf(a))}
	return nil
}

// scanOf looks through an answer. Whether there is something to look for at the moment decides nothing: that comes
// and goes with the run's other requests.
func (e *Exchange) scanOf(framing framing) scan {
	return scan{live: e.sought, tail: tail{off: !e.seeks, framing: framing}}
}

// AnswerCost returns what looking through one answer takes in memory, in bytes: what is read while something waits, and what
// waits with it, in a slice that may have grown to twice of that.
func (e *Exchange) AnswerCost() int64 {
	if !e.seeks {
		return 0
	}
	s := scan{needles: e.sought()}
	return int64(ownBuffer + 2*(ownBuffer+s.boundHeld()))
}

// gotOfAnswer is what the request of an answer got.
func gotOfAnswer(a *http.Response) (asked got) {
	if a.Request != nil {
		asked, _ = a.Request.Context().Value(gotKey{}).(got)
	}
	return asked
}

// patience is how long what is held of the answer waits at most.
func (g got) patience() time.Duration {
	if len(g.known) > 0 {
		return secretPatience
	}
	return usualPatience
}

// contextOf is that of an answer's request.
func contextOf(a *http.Response) context.Context {
	if a.Request == nil {
		return context.Background()
	}
	return a.Request.Context()
}

func unreadableAnswer(why string) error {
	return &Refused{Sentence: "the host " + why + " although it was asked not to, so nobody can see whether a credential is in it"}
}

// unreadable is why a secret can't be found in an answer; "": it can be.
func unreadable(a *http.Response, part bool) string {
	for _, field := range []string{"Content-Encoding", "Grpc-Encoding", "Connect-Content-Encoding"} {
		if codings(a.Header.Values(field)) != nil {
			return "encodes its answer"
		}
	}
	kind := strings.ToLower(strings.Join(a.Header.Values("Content-Type"), ","))
	switch {
	case requestparts.HidesASCII(a.Header.Values("Content-Type")):
		return "writes its answer in a charset in which letters of ASCII are other bytes, or unknown ones,"
	case a.StatusCode == http.StatusIMUsed:
		return "answers with what has changed alone"
	case !part && (a.StatusCode == http.StatusPartialContent || strings.Contains(kind, "multipart/byteranges")):
		return "answers with a part of what it has"
	case a.StatusCode == http.StatusSwitchingProtocols && codings(a.Header.Values("Sec-Websocket-Extensions")) != nil:
		return "extends WebSocket"
	}
	return ""
}

// codings are those of a field's values that are one.
func codings(values []string) []string {
	var all []string
	for _, value := range values {
		for one := range strings.SplitSeq(strings.ToLower(value), ",") {
			if one = strings.TrimSpace(one); one != "" && one != readable {
				all = append(all, one)
			}
		}
	}
	return all
}

// Informational takes the secrets out of the head of an answer before the answer. It empties one of which
// nobody can see whether a secret is in it.
func (e *Exchange) Informational(ctx context.Context, h http.Header) {
	if e.hearAnswer(ctx) != nil {
		clear(h)
	}
	maskHeader(e.sought(), h)
}

// maskHeader masks values. A field whose name has a secret goes: no name can be masked that
// somebody still knows.
func maskHeader(sought *needles, h http.Header) {
	if len(sought.all) == 0 {
		return
	}
	caseless := sought.caseless()
	for name, values := range h {
		lower := strings.ToLower(name)
		if caseless.findInText(lower) != "" || sought.findInText(lower) != "" || sought.findInText(name) != "" {
			delete(h, name)
			continue
		}
		for i, v := range values {
			values[i] = sought.masked(v)
		}
	}
}
