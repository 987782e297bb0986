package exchange

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
)

// maxBody bounds a body in which a placeholder is swapped, and one that is read to be signed.
const maxBody = 1 << 20

// KeptBody is what such a body takes in memory, in bytes: as it was read, and with what is put in.
const KeptBody = 4 * maxBody

// readable is the one encoding in which a secret can be found.
const readable = "identity"

// Exchange is what goes between a sandbox and one host. It is safe for concurrent use.
type Exchange struct {
	credentials []Credential
	// ofHost are those of the host on any of its ports, credentials among them, and alone tells that
	// no other credential may go to it.
	ofHost   []Credential
	kept     []string // see Kept
	alone    bool
	strays   *needles // placeholders of the run, as they must not leave
	caseless *needles // the same, where capitals are not kept
	seeks    bool
	withheld string // why nothing is sent; "": it is
	keeper   Keeper
	// reading is asked before a body is read whole; nil: nobody is.
	reading func(*http.Request) error
	// runs has what must not be in an answer, and run is whose it is there.
	runs *Runs
	run  string
}

// New is the exchange with a host that gets these credentials: none, of most hosts.
// placeholders are all of the run, by their secrets' names.
func New(credentials []Credential, placeholders map[string]string, keeper Keeper) *Exchange {
	strays := map[string][]string{}
	for secret, text := range placeholders {
		strays[secret] = []string{text}
	}
	e := &Exchange{credentials: credentials, ofHost: credentials, keeper: keeper, runs: NewRuns(), strays: newNeedles(strays), seeks: len(credentials) > 0}
	e.caseless = e.strays.caseless()
	return e
}

// Seek has the answers looked through for the run's secrets although the host gets none.
func (e *Exchange) Seek() *Exchange {
	e.seeks = true
	return e
}

// OfHost adds credentials that are for the host, and that requests on this connection may not get: those
// of its other ports, and those that a narrower policy has taken away.
func (e *Exchange) OfHost(all []Credential) *Exchange {
	e.ofHost = slices.Concat(e.credentials, all)
	return e
}

// Kept adds secrets, by name, that the host may have by requests of other runs. Somebody inside may ask for what
// it keeps, so its answers wait as if this run's requests got them.
func (e *Exchange) Kept(names []string) *Exchange {
	e.kept = names
	return e
}

// Alone has the host take no credential of the client's own, whether its requests get one here or
// not. Without it, the host takes none if it gets one that does not allow it.
func (e *Exchange) Alone() *Exchange {
	e.alone = true
	return e
}

// Of has an exchange be one of a run that has others beside it: what any of them learns of the
// run's secrets is looked for in the answers of all of them.
func (e *Exchange) Of(runs *Runs, run string) *Exchange {
	e.runs, e.run = runs, run
	return e
}

// Withhold has every request refused with a sentence; "" has none.
func (e *Exchange) Withhold(sentence string) *Exchange {
	e.withheld = sentence
	return e
}

// Bound has somebody asked before a request's body is read whole. An error ends the request.
func (e *Exchange) Bound(reading func(*http.Request) error) *Exchange {
	e.reading = reading
	return e
}

// Outgoing makes of a client's request the one that leaves. An error is a Refused, and
// nothing leaves then; while a body is sent, its Read gives one.
func (e *Exchange) Outgoing(r *http.Request) error {
	said := requestOf(r)
	credentials := said.credentialsOf(e.credentials)
	if encoded(r) && slices.ContainsFunc(credentials, func(c Credential) bool { return c.swapsIn(Body) }) {
		return &Refused{Sentence: "the request's body is encoded (Content-Encoding), so no credential can be put into it; have the client send it as it is"}
	}
	body, whole, err := e.bounded(r, credentials)
	if err != nil {
		return &Refused{Sentence: "the request's body did not come whole", Cause: err}
	}
	rehearsal := draft{r.Clone(r.Context()), body, whole}
	uses := rehearsal.putSecrets(credentials, nil)
	signing, err := rehearsal.unsign(credentials)
	if err != nil {
		return err
	}
	uses = append(uses, signing...)
	if leak, left := e.findLeak(rehearsal); left {
		return &Refused{Sentence: e.keeper.Leaked(r.Context(), said, leak), Leak: true}
	}
	if e.withheld != "" {
		return &Refused{Sentence: e.withheld}
	}
	p := e.present(draft{r, body, whole}, credentials, len(signing) > 0)
	if err := p.refuseOwn(); err != nil {
		return err
	}
	form := signedFormOf(r, e.ofHost)
	if err := form.checkMore(body); err != nil {
		return err
	}
	if e.seeks {
		if body, err = e.fillRequest(draft{r, body, whole}, said, credentials, uses, len(signing) > 0); err != nil {
			return err
		}
	}
	e.sendBody(draft{r, body, whole}, said, p, form)
	return nil
}

// fillRequest puts secrets into a request, and has it ask for an answer in which they can be found.
// It gives the body that it has then, if that was read. A signed request may ask for a part of what the host has
// if the host has the text of no secret, and so can't give it in parts: of the key it gets signatures alone.
func (e *Exchange) fillRequest(sent draft, said Request, credentials []Credential, uses []Use, signed bool) (body []byte, err error) {
	r := sent.Request
	if len(uses) > 0 && e.runs.stoppedTooOften(e.run) {
		return nil, &Refused{Sentence: tooManyStops}
	}
	e.runs.beginRequest(r.Context(), e.run)
	given, err := e.keeper.Secrets(r.Context(), said, uses)
	if err != nil {
		return nil, &Refused{Sentence: errorSentence(err), Cause: err}
	}
	if err := e.knowGiven(uses, given); err != nil {
		return nil, err
	}
	sent.putSecrets(credentials, given.Secrets)
	if signed {
		putSignature(r, given.Header)
	}
	g := e.gotByRequest(said, uses)
	g.parts = signed && !e.runs.knowsValue(e.run, g.known)
	if !g.parts && slices.ContainsFunc(uses, func(u Use) bool { return u.Sign != nil && u.Sign.Header.Get("Range") != "" }) {
		return nil, &Refused{Sentence: "the request asks for a part of what the host has (Range), which it has signed, and the host gets a secret's text beside the signature (a session's token, or another secret), which can't be found in parts; have the client ask for the whole"}
	}
	rememberGot(r, g)
	askReadable(r, signed, g.parts)
	return sent.body, nil
}

// errorSentence is what a client may read of why a secret can't be had.
func errorSentence(err error) string {
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
func (e *Exchange) bounded(r *http.Request, credentials []Credential) (body []byte, whole bool, err error) {
	wanted := e.alone && bodyForm(r.Header) != otherBody && slices.ContainsFunc(e.ofHost, func(c Credential) bool { return c.swapsIn(Body) })
	for _, c := range credentials {
		wanted = wanted || c.swapsIn(Body) && bodyForm(r.Header) != otherBody || c.signsRequest(r) && sigv4.NeedsBody(r.Header)
	}
	if !wanted || r.Body == nil || r.Body == http.NoBody || r.ContentLength > maxBody {
		return nil, false, nil
	}
	if e.reading != nil {
		if err := e.reading(r); err != nil {
			return nil, false, err
		}
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

// knowGiven remembers what must not be in an answer. A secret that is used and that was not
// given is an error: its request would go without.
func (e *Exchange) knowGiven(uses []Use, given Given) error {
	for _, u := range uses {
		if u.Sign == nil && given.Secrets[u.Secret] == "" || u.Sign != nil && given.Header.Get("Authorization") == "" {
			return &Refused{Sentence: "the secret " + u.Secret + " was not given"}
		}
	}
	e.runs.knowGiven(e.run, given)
	return nil
}

// hearAnswer has all be sought that may be in what has come of an answer by now. An error is a Refused, unless
// the client has gone.
func (e *Exchange) hearAnswer(ctx context.Context) error {
	if !e.seeks {
		return nil
	}
	err := e.runs.hearLent(ctx, e.run)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &Refused{Sentence: "it can't be found out which credentials were lent meanwhile, so nobody can see whether one is in the answer", Cause: err}
}

// sought are the values that must not be in an answer, as of now.
func (e *Exchange) sought() *needles { return e.runs.sought(e.run) }

// sendBody gives the request its body, watched for placeholders.
func (e *Exchange) sendBody(d draft, said Request, p *presented, form *signedForm) {
	r := d.Request
	r.GetBody = nil
	if d.whole {
		r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = io.NopCloser(bytes.NewReader(d.body)), int64(len(d.body)), nil, nil
		r.Header.Del("Content-Length")
		return // it was looked at
	}
	if r.Body == nil || r.Body == http.NoBody || len(e.strays.all) == 0 && p == nil && form == nil {
		return
	}
	body := &outgoing{Closer: r.Body, context: r.Context(), trailer: r.Trailer, exchange: e, from: r.Body, said: said, form: form, scan: scan{needles: e.strays, known: true}}
	if p != nil {
		body.alone, body.fields = true, p.fields
	}
	r.Body = body
}

// findLeak finds a placeholder that is left in a request.
func (e *Exchange) findLeak(d draft) (Leak, bool) {
	if len(e.strays.all) == 0 {
		return Leak{}, false
	}
	for _, at := range d.listTexts() {
		of := e.strays.findInText(at.text)
		if at.caseless {
			of = e.caseless.findInText(strings.ToLower(at.text))
		}
		if of != "" {
			return Leak{Secret: of, Where: at.where}, true
		}
	}
	return Leak{}, false
}
