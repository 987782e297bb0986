package exchange

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sigv4"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// presented is a request to a host that gets a credential, with all by which the host may know
// who asks. Whatever of that is not the credential's placeholder is a credential of the client's
// own: by it, the host could be used for another account than the operator's.
type presented struct {
	draft
	credentials  []Credential // that this request gets
	ofHost       []Credential // that the host gets by any request, on any of its ports
	placeholders []string     // of all that requests on this connection get
	signed       bool         // it is signed anew
	// Names, folded, that hold a credential at this host, whatever they are called elsewhere: those
	// that the credentials have, and those under which the client has put a placeholder.
	fields, parameters map[string]bool
	content            []parameter // of the body, where placeholders are swapped in it
}

// refuseOwn refuses a request that has a credential of the client's own beside the one that the host
// gets, or in its place. Cookies and the headers of sessions are taken out, since clients send
// them unasked.
func (p *presented) refuseOwn() error {
	if p == nil {
		return nil
	}
	if err := p.readContent(); err != nil {
		return err
	}
	for _, f := range p.finders() {
		if where := f.find(); where != "" {
			return ownCredential(where)
		}
	}
	p.dropSessions()
	return nil
}

// placeFinder finds a credential of the client's own in a place of a request.
type placeFinder struct {
	place requestparts.Place
	find  func() (where string)
}

// finders are what looks in each place, in their order. A method, a host and what is behind a
// body say who asks at no host; names of fields are looked at with their values.
func (p *presented) finders() []placeFinder {
	none := func() string { return "" }
	return []placeFinder{
		{requestparts.Method, none},
		{requestparts.Host, none},
		{requestparts.User, p.foundInURL},
		{requestparts.FieldName, none},
		{requestparts.FieldValue, p.inFields},
		{requestparts.FieldValue, p.inSubprotocols},
		{requestparts.FieldValue, p.inCookies},
		{requestparts.Query, p.inParameters},
		{requestparts.BodyText, p.inBody},
		{requestparts.Path, p.inPath},
		{requestparts.TrailerName, p.inTrailer},
		{requestparts.TrailerValue, none},
	}
}

// ownCredential is a refusal that names the place. The client may have chosen a name for it of
// any length, which is for no record.
func ownCredential(where string) error {
	const most = 80 // bytes
	return &Refused{Sentence: "a request has a credential of its own (" + text.Shorten(where, most) + ") for a host that gets one by the policy; leave it out, or the policy says own_credentials: allow"}
}

// present gives what a request presents; nil: nobody minds.
func (e *Exchange) present(d draft, credentials []Credential, signed bool) *presented {
	if !e.alone && (len(e.credentials) == 0 || slices.ContainsFunc(e.credentials, func(c Credential) bool { return c.Own })) {
		return nil
	}
	p := &presented{draft: d, credentials: credentials, ofHost: e.ofHost, signed: signed, fields: map[string]bool{}, parameters: map[string]bool{}}
	for _, c := range e.credentials {
		if c.Placeholder != "" {
			p.placeholders = append(p.placeholders, c.Placeholder)
		}
	}
	for _, c := range e.ofHost {
		if c.Header != "" {
			p.fields[foldField(c.Header)] = true
		}
	}
	for name, values := range d.Header {
		if !p.replaced(name) && slices.ContainsFunc(values, p.holdsPlaceholder) {
			p.fields[foldField(name)] = true
		}
	}
	return p
}

// replaced tells whether the header is set, or signed anew, whatever the client put there.
func (p *presented) replaced(name string) bool {
	return p.signed && slices.Contains(sigv4.Header(), name) ||
		slices.ContainsFunc(p.credentials, func(c Credential) bool { return c.setsCredential() && c.Header == name })
}

// foundInURL is where a credential is that stands before the host's name.
func (p *presented) foundInURL() string {
	if p.URL.User == nil {
		return ""
	}
	return "URL"
}

// inFields is the header field that has another credential; "": there is none.
func (p *presented) inFields() string {
	for _, name := range slices.Sorted(maps.Keys(p.Header)) {
		is := foldField(name)
		if p.replaced(name) || isCookie(is) || is == subprotocols || !p.fields[is] && !holdsKey(is) {
			continue
		}
		for _, value := range p.Header[name] {
			if p.another(is, value) {
				return "header " + http.CanonicalHeaderKey(name)
			}
		}
	}
	return ""
}

// subprotocols is the field, folded, in which clients that can't set any other have a credential.
const subprotocols = "secwebsocketprotocol"

// inSubprotocols looks at what a WebSocket's client offers to speak: a credential is one of
// these behind a word for it, or a part of one.
func (p *presented) inSubprotocols() string {
	const where = "header Sec-Websocket-Protocol"
	for name, values := range p.Header {
		if foldField(name) != subprotocols || p.replaced(name) {
			continue
		}
		announced := false // the next one is a credential
		for _, token := range strings.FieldsFunc(strings.Join(values, ","), func(c rune) bool { return strings.ContainsRune(" \t,;", c) }) {
			before, last := "", token
			if at := strings.LastIndexByte(token, '.'); at >= 0 {
				before, last = token[:at], token[at+1:]
			}
			is := foldName(token)
			switch {
			case p.isPlaceholder(token):
				announced = false
			case announced:
				return where
			case p.endsWithPlaceholder(token):
			case before == "" && (holdsKey(is) || slices.Contains(shortKeys(), is)):
				announced = true
			case holdsKey(foldName(before)) || slices.Contains(shortKeys(), foldName(before)) || holdsKey(foldName(last)) || strings.Contains(is, "bearer") || strings.Contains(is, "authorization") || holdsKey(is) || likeKey(token):
				return where
			}
		}
	}
	return ""
}

// isCookie tells whether a field, folded, has cookies.
func isCookie(is string) bool { return is == "cookie" || is == "cookie2" }

// inCookies leaves those cookies that are a placeholder, and takes out all others: some servers
// end one at a blank or a comma. One that has more than the placeholder in it is refused, since
// without it the client would be somebody else.
func (p *presented) inCookies() string {
	for _, name := range slices.Sorted(maps.Keys(p.Header)) {
		if !isCookie(foldField(name)) || p.replaced(name) {
			continue
		}
		var kept []string
		for _, one := range wordsOf(strings.Join(p.Header[name], ";")) {
			_, value, _ := strings.Cut(one, "=")
			switch {
			case p.isPlaceholder(value):
				kept = append(kept, one)
			case p.holdsPlaceholder(one):
				return "header " + http.CanonicalHeaderKey(name)
			}
		}
		if len(kept) == 0 {
			delete(p.Header, name)
			continue
		}
		p.Header[name] = []string{strings.Join(kept, "; ")}
	}
	return ""
}

// dropSessions takes out the headers in which clients send a session back that some host has
// begun with them, as they do with cookies. Those of protocols, such as Mcp-Session-Id, stay.
func (p *presented) dropSessions() {
	for name, values := range p.Header {
		is := foldField(name)
		if slices.Contains([]string{"session", "sessionid", "xsession", "xsessionid", "authsession", "xauthsession", "sid", "xsid"}, is) && !p.fields[is] && !slices.ContainsFunc(values, p.holdsPlaceholder) {
			delete(p.Header, name)
		}
	}
}

// inTrailer is the field of a credential that is announced to come behind the body.
func (p *presented) inTrailer() string { return ownTrailer(p.Trailer, p.fields) }

// ownTrailer is the field of a credential behind a body; "": there is none. Nothing is swapped
// there, so it is the name alone that counts: one that commonly holds a credential, or that does
// at this host.
func ownTrailer(trailer http.Header, fields map[string]bool) string {
	for _, name := range slices.Sorted(maps.Keys(trailer)) {
		if is := foldField(name); fields[is] || holdsKey(is) || isCookie(is) {
			return "trailer " + http.CanonicalHeaderKey(name)
		}
	}
	return ""
}
