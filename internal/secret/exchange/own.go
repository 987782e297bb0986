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
			if (holdsKey(is) || is == "secwebsocketprotocol" && holdsKey(foldName(value))) && e.another(is, value) {
				return ownCredential("header " + http.CanonicalHeaderKey(name))
			}
		}
	}
	for part := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		key, value, _ := strings.Cut(part, "=")
		key = UnescapeForm(key)
		if is := foldName(key); (holdsKey(is) || slices.Contains([]string{"key", "auth", "sig", "jwt", "pwd"}, is)) && value != "" && e.strays.in(value) == "" {
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

// another tells whether a header's value has another credential than the placeholder, also
// beside it: hosts take the first word that they know, and pass over the rest. The user of
// basic authentication is none, since it is the operator's to choose.
func (e *Exchange) another(is, value string) bool {
	if strings.TrimSpace(value) == "" {
		return false
	}
	words := strings.FieldsFunc(value, func(c rune) bool { return strings.ContainsRune(" \t,;", c) })
	for i, word := range words {
		name, _, named := strings.Cut(word, "=")
		switch {
		case e.strays.in(word) != "":
		case i == 0 && len(words) > 1 && strings.HasSuffix(is, "authorization") && !named: // the scheme
		case named && !holdsKey(foldName(name)) && e.strays.in(value) != "":
		default:
			return true
		}
	}
	return false
}

// dropCookies leaves those cookies that have a placeholder.
func (e *Exchange) dropCookies(r *http.Request, name string) {
	var kept []string
	for _, value := range r.Header[name] {
		for one := range strings.SplitSeq(value, ";") {
			if e.strays.in(one) != "" {
				kept = append(kept, strings.TrimSpace(one))
			}
		}
	}
	if len(kept) == 0 {
		delete(r.Header, name)
		return
	}
	r.Header[name] = []string{strings.Join(kept, "; ")}
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
	has := func(part string) bool { return strings.Contains(is, part) }
	others := []string{"csrf", "xsrf", "continuation", "page", "next", "sync", "cancel", "idempotency", "design"}
	if slices.ContainsFunc(others, has) && !slices.ContainsFunc([]string{"access", "apikey", "authorization", "authtoken"}, has) {
		return false
	}
	for _, end := range []string{
		"authorization", "apikey", "token", "authkey", "accesskey", "accesskeyid", "secretkey", "accountkey", "subscriptionkey", "functionskey", "secret", "password", "passwd", "passphrase",
		"applicationkey", "appkey", "masterkey", "privatekey", "sharedkey", "authentication", "assertion", "xjwt", "bearer", "credential", "credentials", "signature", "xauth", "xauthuser",
	} {
		if strings.HasSuffix(is, end) {
			return true
		}
	}
	return strings.Contains(is, "apikey") || strings.HasPrefix(is, "bearer")
}
