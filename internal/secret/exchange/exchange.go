package exchange

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/secret/sigv4"
)

// maxBody bounds a body in which a placeholder is swapped, and one that is read to be signed.
const maxBody = 1 << 20

// readable is the one encoding in which a secret can be found.
const readable = "identity"

// Exchange is what goes between a sandbox and one host. It is safe for concurrent use.
type Exchange struct {
	credentials []Credential
	strays      []stray
	keeper      Keeper

	mu       sync.Mutex // guards both
	underway int        // requests that have secrets and have not ended
	needles  map[string][]string
}

// stray is a placeholder of the run, as it must not leave.
type stray struct {
	secret string
	forms  []string
}

// New is the exchange with a host that gets these credentials: none, of most hosts.
// placeholders are all of the run, by their secrets' names.
func New(credentials []Credential, placeholders map[string]string, keeper Keeper) *Exchange {
	e := &Exchange{credentials: credentials, keeper: keeper, needles: map[string][]string{}}
	for _, secret := range slices.Sorted(maps.Keys(placeholders)) {
		text := placeholders[secret]
		e.strays = append(e.strays, stray{secret, formsOf(text)})
	}
	return e
}

// Outgoing makes of a client's request the one that leaves. An error is a Refused, and
// nothing leaves then; while a body is sent, its Read gives one.
func (e *Exchange) Outgoing(r *http.Request) error {
	said := requestOf(r)
	credentials := said.of(e.credentials)
	if encoded(r) && slices.ContainsFunc(credentials, func(c Credential) bool { return c.swaps(Body) }) {
		return &Refused{Sentence: "the request's body is encoded (Content-Encoding), so no credential can be put into it; have the client send it as it is"}
	}
	body, whole, err := bounded(r, credentials)
	if err != nil {
		return &Refused{Sentence: "the request's body did not come whole", Cause: err}
	}
	rehearsal := draft{r.Clone(r.Context()), body, whole}
	uses := rehearsal.put(credentials, nil)
	signing, err := rehearsal.unsign(credentials)
	if err != nil {
		return err
	}
	uses = append(uses, signing...)
	if leak, left := e.left(rehearsal); left {
		return &Refused{Sentence: e.keeper.Leaked(r.Context(), said, leak), Leak: true}
	}
	if len(e.credentials) > 0 {
		given, err := e.keeper.Secrets(r.Context(), said, uses)
		if err != nil {
			return &Refused{Sentence: sentence(err), Cause: err}
		}
		e.begin(r.Context())
		if err := e.know(uses, given); err != nil {
			return err
		}
		sent := draft{r, body, whole}
		sent.put(credentials, given.Secrets)
		if len(signing) > 0 {
			sign(r, given.Header)
		}
		body = sent.body
		remember(r, uses)
		r.Header.Set("Accept-Encoding", readable) // or nothing could be found in the answer
	}
	e.send(r, said, body, whole)
	return nil
}

// sentence is what a client may read of why a secret can't be had.
func sentence(err error) string {
	if refused, ok := errors.AsType[*Refused](err); ok {
		return refused.Sentence
	}
	return "the credential for this host can't be had"
}

// encoded tells whether a request has a body that can't be read as it stands.
func encoded(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && slices.ContainsFunc(r.Header.Values("Content-Encoding"), func(coding string) bool {
		return coding != "" && !strings.EqualFold(strings.TrimSpace(coding), readable)
	})
}

// bounded reads a body in which a placeholder may have to be swapped. whole is false if it
// is none, or too large: it is still the request's, then.
func bounded(r *http.Request, credentials []Credential) (body []byte, whole bool, err error) {
	wanted := false
	for _, c := range credentials {
		wanted = wanted || c.swaps(Body) && bodyForm(r.Header) != "" || c.signs(r) && sigv4.NeedsBody(r.Header)
	}
	if !wanted || r.Body == nil || r.Body == http.NoBody || r.ContentLength > maxBody {
		return nil, false, nil
	}
	body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, false, err
	}
	if len(body) > maxBody {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		return nil, false, nil
	}
	return body, true, nil
}

// begin has a request count as under way until its context ends. When none is, the secrets
// are forgotten: the next request gets them anew, and they must not lie about meanwhile.
func (e *Exchange) begin(request context.Context) {
	e.mu.Lock()
	e.underway++
	e.mu.Unlock()
	errand.When(request, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.underway--; e.underway == 0 {
			clear(e.needles)
		}
	})
}

// know remembers what must not be in an answer. A secret that is used and that was not
// given is an error: its request would go without.
func (e *Exchange) know(uses []Use, given Given) error {
	for _, u := range uses {
		if u.Sign == nil && given.Secrets[u.Secret] == "" || u.Sign != nil && given.Header.Get("Authorization") == "" {
			return &Refused{Sentence: "the secret " + u.Secret + " was not given"}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, secret := range given.Secrets {
		if secret != "" && e.needles[secret] == nil {
			e.needles[secret] = formsOf(secret) // also the one before, if it was renewed
		}
	}
	return nil
}

// send gives the request its body, watched for placeholders.
func (e *Exchange) send(r *http.Request, said Request, body []byte, whole bool) {
	r.GetBody = nil
	if whole {
		r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil, nil
		r.Header.Del("Content-Length")
		return // it was looked at
	}
	if r.Body == nil || r.Body == http.NoBody || len(e.strays) == 0 {
		return
	}
	o := &outgoing{Closer: r.Body, request: r, exchange: e, from: r.Body, said: said}
	for _, s := range e.strays {
		o.scan.needles = append(o.scan.needles, s.forms...)
	}
	o.meant.needles = o.scan.needles
	r.Body = o
}

// left finds a placeholder that is left in a request.
func (e *Exchange) left(d draft) (Leak, bool) {
	for _, s := range e.strays {
		for _, at := range d.texts() {
			if at.has(s.forms) {
				return Leak{s.secret, at.where}, true
			}
		}
	}
	return Leak{}, false
}

// usesKey is under what a request's context has the secrets that it got.
type usesKey struct{}

// remember has a request's answer know what it got.
func remember(r *http.Request, uses []Use) {
	var secrets []string
	for _, u := range uses {
		if !slices.Contains(secrets, u.Secret) {
			secrets = append(secrets, u.Secret)
		}
	}
	*r = *r.WithContext(context.WithValue(r.Context(), usesKey{}, secrets))
}

// Incoming takes the secrets out of a host's answer. An error is a Refused.
func (e *Exchange) Incoming(a *http.Response) error {
	if a.StatusCode == http.StatusUnauthorized && a.Request != nil {
		if secrets, _ := a.Request.Context().Value(usesKey{}).([]string); len(secrets) > 0 {
			e.keeper.Declined(a.Request.Context(), secrets)
		}
	}
	needles := e.known()
	if len(needles) == 0 {
		return nil
	}
	for _, encoding := range a.Header.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(encoding), "identity") {
			return &Refused{Sentence: "the host encodes its answer although it was asked not to, so nobody can see whether a credential is in it"}
		}
	}
	a.Status = masked(needles, a.Status)
	maskHeader(needles, a.Header)
	in := &incoming{from: a.Body, answer: a, scan: scan{needles: needles}}
	if both, is := a.Body.(io.ReadWriteCloser); is { // of a connection that goes on in another protocol
		a.Body = struct {
			*incoming
			io.Writer
		}{in, both}
		return nil
	}
	a.Body = in
	return nil
}

// Informational takes the secrets out of the head of an answer before the answer.
func (e *Exchange) Informational(h http.Header) { maskHeader(e.known(), h) }

func (e *Exchange) known() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, forms := range e.needles {
		all = append(all, forms...)
	}
	return all
}

func maskHeader(needles []string, h http.Header) {
	for _, values := range h {
		for i, v := range values {
			values[i] = masked(needles, v)
		}
	}
}
