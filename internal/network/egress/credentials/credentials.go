// Package credentials has the requests of sandboxes get secrets, and no placeholder leave
// to where its secret does not go. It asks the door once for each connection what its
// requests get, and once for each request for the secrets themselves, of which it keeps
// none once no request of the sandbox is under way: so long they are looked for in the answers
// on all of its connections, with all others that the run has.
package credentials

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// Exchanges are the exchanges by a door. Those of one that New made know of each other's
// secrets, sandbox by sandbox; without it a connection knows its own alone.
type Exchanges struct {
	Door door.Secrets
	runs *exchange.Runs
}

// New makes the exchanges by a door.
func New(d door.Secrets) Exchanges {
	return Exchanges{d, exchange.NewRuns().Asking(func(ctx context.Context, sandbox string, since uint64) (map[string][]string, uint64, bool, error) {
		a, err := d.Lent(ctx, door.LentAsk{Sandbox: sandbox, Since: since})
		return a.Values, a.Moment, a.More, err
	})}
}

// Exchange implements requests.Exchanges.
func (e Exchanges) Exchange(ctx context.Context, of requests.Connection) (requests.Exchange, error) {
	at := door.HostPort{Sandbox: of.Sandbox, Name: of.Name, Port: of.Port}
	given, err := e.Door.Credentials(ctx, door.CredentialsAsk{HostPort: at, TLS: of.TLS})
	if err != nil {
		return nil, withheld(err)
	}
	if len(given.Credentials) == 0 && len(given.Placeholders) == 0 && !given.Seek && !given.Alone && given.Withheld == "" {
		return nil, nil //nolint:nilnil // there is nothing to see to
	}
	x := exchange.New(given.Credentials, given.Placeholders, keeper{e.Door, at})
	if e.runs != nil {
		x.Of(e.runs, of.Sandbox)
	}
	x.OfHost(given.OfHost).Kept(given.Kept)
	if given.Alone {
		x.Alone()
	}
	if given.Seek {
		x.Seek()
	}
	x.Bound(func(r *http.Request) error { return requests.TakePlace(r, of.Searches, exchange.KeptBody) })
	return credentialVisit{x.Withhold(given.Withheld)}, nil
}

// withheld is the refusal of requests for which the door gives nothing.
func withheld(err error) *requests.Refusal {
	return &requests.Refusal{Rule: door.RuleHostCredential, Reason: fault.Sentence(err, "the credentials for this host can't be had")}
}

// credentialVisit is what sees to the requests of one connection.
type credentialVisit struct{ exchange *exchange.Exchange }

// Outgoing implements requests.Exchange.
func (v credentialVisit) Outgoing(r *http.Request) error {
	if err := v.exchange.Outgoing(r); err != nil {
		return refusal(err)
	}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = body{r.Body}
	}
	ctx := r.Context()
	early := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		v.exchange.Informational(ctx, http.Header(h))
		return nil
	}}
	*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), early)) // it is called before the one that passes them on
	return nil
}

// Incoming implements requests.Exchange.
func (v credentialVisit) Incoming(a *http.Response) error {
	if err := requests.Charge(a.Request, v.exchange.AnswerCost()); err != nil {
		return err
	}
	if err := v.exchange.Incoming(a); err != nil {
		return refusal(err)
	}
	return nil
}

// body is one that is looked through while it is sent.
type body struct{ io.ReadCloser }

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = refusal(err)
	}
	return n, err
}

// refusal is an exchange's error as the carrier takes it.
func refusal(err error) error {
	if scanned, ok := errors.AsType[*requests.Refusal](err); ok {
		return scanned // of the body, before it came here
	}
	refused, ok := errors.AsType[*exchange.Refused](err)
	if !ok {
		return err
	}
	if refused.Leak {
		return &requests.Refusal{Rule: door.RuleHostPlaceholder, Reason: refused.Sentence, Recorded: true}
	}
	return &requests.Refusal{Rule: door.RuleHostCredential, Reason: refused.Sentence}
}

// keeper is the door, about one host.
type keeper struct {
	door door.Secrets
	at   door.HostPort
}

// Secrets implements exchange.Keeper.
func (k keeper) Secrets(ctx context.Context, r exchange.Request, uses []exchange.Use) (exchange.Given, error) {
	a, err := k.door.Secrets(ctx, door.SecretsAsk{HostPort: k.at, Request: r, Uses: uses})
	if err != nil {
		return exchange.Given{}, &exchange.Refused{Sentence: withheld(err).Reason, Cause: err}
	}
	return exchange.Given{Secrets: a.Values, Header: a.Header, Others: a.Others}, nil
}

// Declined implements exchange.Keeper. A door that does not answer has nothing fetched anew.
func (k keeper) Declined(ctx context.Context, secrets []string) {
	_ = k.door.Declined(ctx, door.DeclinedAsk{HostPort: k.at, Secrets: secrets})
}

// recordTime bounds how long the door takes to record a leak.
const recordTime = 10 * time.Second

// Leaked implements exchange.Keeper. It is on record, whether its client waits for it or not.
func (k keeper) Leaked(ctx context.Context, r exchange.Request, l exchange.Leak) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	a, err := k.door.Leaked(ctx, door.LeakAsk{HostPort: k.at, Request: r, Leak: l})
	switch {
	case err != nil && l.Answer:
		return "an answer has stopped within what may be a secret, which can't be put on record"
	case err != nil:
		return "a request has a placeholder where its secret does not go, which can't be put on record"
	case a.RequestID == "":
		return a.Decision.Reason
	}
	return a.Decision.Reason + "; request " + a.RequestID + "; see: cofferdam why"
}
