package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// credentials are the texts by which the upstream, and the proxy on the way to it, know this
// installation. The text of its index's URL is none, though it is given as a user or a password
// (https://ORG@HOST/ORG/): sandboxes know that URL, and all that the upstream links to begins with it.
func (c Config) credentials() []string {
	texts := exchange.BasicTexts(c.Username, c.Password)
	if c.Token != "" {
		texts = append(texts, c.Token)
	}
	if u, err := url.Parse(c.Proxy); err == nil && u.User != nil {
		password, _ := u.User.Password()
		texts = append(texts, exchange.BasicTexts(u.User.Username(), password)...)
	}
	return slices.DeleteFunc(texts, func(text string) bool {
		return strings.EqualFold(text, anonymous) || exchange.NewSought(text).In(c.Index)
	})
}

// anonymous is the user, and often the password, by which registries let everybody in.
const anonymous = "anonymous"

// soughtTexts are the credentials that no answer of an upstream may have in it. A nil Sought looks for nothing.
type soughtTexts struct {
	own *exchange.Sought // the upstream's, and those of other upstreams at the host of its index
	// others are those and what another upstream's host was shown, by that host's name: files may lie there.
	others map[string]*exchange.Sought
	all    *exchange.Sought // for errors
}

func soughtIn(cfg Config, beside []Config) soughtTexts {
	own, theirs := cfg.credentials(), map[string][]string{}
	for _, other := range beside {
		if host, texts := hostname(other.Index), other.credentials(); len(texts) > 0 && host != "" {
			theirs[host] = append(theirs[host], texts...)
		}
	}
	at := hostname(cfg.Index)
	own = append(own, theirs[at]...)
	delete(theirs, at)
	s := soughtTexts{own: exchange.NewSought(own...), others: map[string]*exchange.Sought{}}
	all := slices.Clone(own)
	for host, texts := range theirs {
		s.others[host] = exchange.NewSought(slices.Concat(own, texts)...)
		all = append(all, texts...)
	}
	s.all = exchange.NewSought(all...)
	return s
}

// soughtIn are those that an answer may not have in it, by who gives it.
func (s soughtTexts) soughtIn(resp *http.Response) *exchange.Sought {
	if others, ok := s.others[hostOf(resp.Request.URL)]; ok {
		return others
	}
	return s.own
}

// hostname is that of a URL; "" if it has none.
func hostname(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return ""
	}
	return hostOf(u)
}

// hostOf is a URL's host in one of the ways in which it is written.
func hostOf(u *url.URL) string {
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// Sentences about an upstream that says the credential which it was shown.
const (
	saysCredential     = "the upstream's answer has the credential in it by which it knows the gateway, so nothing of it is passed on; have the registry's operator see why, and give the gateway another credential"
	redirectCredential = "the upstream redirects to a URL with the credential in it by which it knows the gateway, so it is not followed; have the registry's operator see why, and give the gateway another credential"
)

// lookAtHead takes the credentials out of the head of an answer. A redirect to a URL with one in it is
// refused: it would be a part of all that is read relative to that URL.
func (c *Client) lookAtHead(resp *http.Response) error {
	sought := c.sought.soughtIn(resp)
	if sought.In(resp.Header.Get("Location")) {
		discard(resp)
		return fault.Invalid(redirectCredential)
	}
	sought.Mask(resp.Header)
	return nil
}

// receiver passes the bytes of an answer on to a sink, looked through for the credentials. It is the one
// way of a body to a sink. Its errors that are the sink's own are a sinkError.
type receiver struct {
	to     Sink
	search *exchange.Search // nil: there is nothing to look for
	exact  bool             // nothing may be changed, so that what has a credential in it is refused
}

func (c *Client) receiveBody(resp *http.Response, to Sink, exact bool) *receiver {
	r := &receiver{to: to, exact: exact}
	if sought := c.sought.soughtIn(resp); sought != nil {
		r.search = sought.Search()
	}
	return r
}

// Write implements io.Writer.
func (r *receiver) Write(p []byte) (int, error) {
	if err := r.takeBytes(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// endBody ends the body; it is called when the body has come whole.
func (r *receiver) endBody() error { return r.takeBytes(nil, true) }

// masked tells whether something was taken out of what has come.
func (r *receiver) masked() bool { return r.search != nil && r.search.Found }

func (r *receiver) takeBytes(p []byte, last bool) error {
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
	if err == nil || !c.sought.all.In(err.Error()) {
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
