package exchange

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/secret/sigv4"
)

// own refuses a request that has a credential of the client's own beside the one that the
// host gets, or in its place: it would use the host for another account than the operator's.
// Cookies are taken out, since clients send them unasked.
func (e *Exchange) own(r *http.Request) error {
	if len(e.credentials) == 0 || slices.ContainsFunc(e.credentials, func(c Credential) bool { return c.Own }) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if e.replaced(name) {
			continue
		}
		is := foldName(name)
		if is == "cookie" || is == "cookie2" {
			e.dropCookies(r, name)
			continue
		}
		for _, value := range r.Header[name] {
			if (holdsKey(is) || is == "secwebsocketprotocol" && holdsKey(foldName(value))) && e.strays.in(value) == "" {
				return ownCredential("header " + http.CanonicalHeaderKey(name))
			}
		}
	}
	for part := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		key, value, _ := strings.Cut(part, "=")
		key = UnescapeForm(key)
		if is := foldName(key); (holdsKey(is) || is == "key" || is == "auth" || is == "sig") && value != "" && e.strays.in(value) == "" {
			return ownCredential("parameter " + is)
		}
	}
	return nil
}

func ownCredential(where string) error {
	return &Refused{Sentence: "a request has a credential of its own (" + where + ") for a host that gets one by the policy; leave it out, or the policy says own_credentials: allow"}
}

// replaced tells whether the header is set, or signed anew, whatever the client put there.
func (e *Exchange) replaced(name string) bool {
	return slices.ContainsFunc(e.credentials, func(c Credential) bool {
		return c.Git == "" && c.sets() && c.Header == name || c.Sign == SigV4 && slices.Contains(sigv4.Header(), name)
	})
}

// dropCookies leaves those values of a header that have a placeholder.
func (e *Exchange) dropCookies(r *http.Request, name string) {
	kept := slices.DeleteFunc(r.Header[name], func(value string) bool { return e.strays.in(value) == "" })
	if r.Header[name] = kept; len(kept) == 0 {
		delete(r.Header, name)
	}
}

// foldName is a name as servers may fold it: CGI and WSGI make one variable of many names.
func foldName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			return c
		}
		return -1
	}, name)
}

// holdsKey tells whether a header or parameter of this name, folded, commonly holds a
// credential.
func holdsKey(is string) bool {
	for _, other := range []string{"csrf", "xsrf", "continuation", "page", "next", "sync", "cancel", "idempotency", "design"} {
		if strings.Contains(is, other) {
			return false
		}
	}
	for _, end := range []string{
		"authorization", "apikey", "token", "authkey", "accesskey", "accesskeyid", "secretkey", "accountkey", "subscriptionkey", "functionskey", "apisecret", "clientsecret", "password", "passwd",
		"bearer", "credential", "credentials", "signature", "xauth", "xauthuser",
	} {
		if strings.HasSuffix(is, end) {
			return true
		}
	}
	return strings.Contains(is, "apikey") || strings.HasPrefix(is, "bearer")
}
