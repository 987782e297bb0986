package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/secret/exchange"
)

// credentials are the texts by which the upstream, and the proxy on the way to it, know this
// installation.
func (c Config) credentials() []string {
	texts := exchange.BasicTexts(c.Username, c.Password)
	if c.Token != "" {
		texts = append(texts, c.Token)
	}
	if u, err := url.Parse(c.Proxy); err == nil && u.User != nil {
		password, _ := u.User.Password()
		texts = append(texts, exchange.BasicTexts(u.User.Username(), password)...)
	}
	return texts
}

// soughtIn are the credentials that no answer of an upstream may have in it: its own, and those of other
// upstreams at the same host, which knows them, too. It is nil if there are none.
func soughtIn(cfg Config, others []Config) *exchange.Sought {
	texts := cfg.credentials()
	for _, other := range others {
		if host := hostname(other.Index); host != "" && host == hostname(cfg.Index) {
			texts = append(texts, other.credentials()...)
		}
	}
	return exchange.NewSought(texts...)
}

// hostname is that of a URL; "" if it has none.
func hostname(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Sentences about an upstream that says the credential which it was shown.
const (
	saysCredential     = "the upstream's answer has the credential in it by which it knows the gateway, so nothing of it is passed on; have the registry's operator see why, and give the gateway another credential"
	redirectCredential = "the upstream redirects to a URL with the credential in it by which it knows the gateway, so it is not followed; have the registry's operator see why, and give the gateway another credential"
)

// lookAtHead takes the credentials out of the head of an answer. A redirect to a URL with one in it is
// refused: it would be a part of all that is read relative to that URL.
func (c *Client) lookAtHead(resp *http.Response) error {
	if c.sought.In(resp.Header.Get("Location")) {
		discard(resp)
		return fault.Invalid(redirectCredential)
	}
	c.sought.Mask(resp.Header)
	return nil
}

// receiver passes the bytes of an answer on to a sink, looked through for the credentials. It is the one
// way of a body to a sink. Its errors that are the sink's own are a sinkError.
type receiver struct {
	to     Sink
	search *exchange.Search // nil: there is nothing to look for
	exact  bool             // nothing may be changed, so that what has a credential in it is refused
}

func (c *Client) receive(to Sink, exact bool) *receiver {
	r := &receiver{to: to, exact: exact}
	if c.sought != nil {
		r.search = c.sought.Search()
	}
	return r
}

// Write implements io.Writer.
func (r *receiver) Write(p []byte) (int, error) {
	if err := r.take(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end is to be called when the body has come whole.
func (r *receiver) end() error { return r.take(nil, true) }

// masked tells whether something was taken out of what has come.
func (r *receiver) masked() bool { return r.search != nil && r.search.Found }

func (r *receiver) take(p []byte, last bool) error {
	if r.search != nil {
		clean := r.search.Take(p, last)
		switch {
		case !r.exact:
			p = clean
		case r.search.Found:
			return fault.Invalid(saysCredential)
		}
	}
	if len(p) == 0 {
		return nil
	}
	if _, err := r.to.Write(p); err != nil {
		return &sinkError{err}
	}
	return nil
}

// silence is an error without what the upstream said, if that has a credential in it: errors of
// transports, certificates and protocols quote what came.
func (c *Client) silence(err error) error {
	if err == nil || !c.sought.In(err.Error()) {
		return err
	}
	var known []error
	for _, cause := range []error{ErrFailed, ErrDeclined, ErrUnrecorded} {
		if errors.Is(err, cause) {
			known = append(known, cause)
		}
	}
	category := fault.KindOf(err).Category
	if category == nil {
		category = fault.ErrInvalid
	}
	return fault.Wrap(category, errors.Join(known...), saysCredential)
}
