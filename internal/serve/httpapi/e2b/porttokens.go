package e2b

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// apiKey finds this daemon's own tokens, by their form.
var apiKey = regexp.MustCompile(`e2b_[0-9a-f]{40}`)

// takeTokens takes out of the head of a visit all that lets somebody in at the daemon: its tokens, and the
// access tokens of the sandbox, which are given. Nothing inside is to have one, so they are found in each
// header and in the URL, however they are written there (basic authentication has them in base64). The
// headers by which clients show them are left out; elsewhere each letter becomes an asterisk. A body is not
// looked through: it is the visitor's own.
func takeTokens(r *http.Request, access []string) {
	for _, name := range []string{headerSandbox, headerPort, headerTraffic} {
		r.Header.Del(name)
	}
	find := tokenFinder(slices.DeleteFunc(slices.Clone(access), func(token string) bool { return token == "" }))
	if all := headText(r); exchange.Masked(all, find) == all {
		return // as of nearly all requests
	}
	for name, values := range r.Header {
		shows := slices.Contains([]string{headerAccess, "X-Api-Key", "Authorization"}, name)
		for i, value := range values {
			values[i] = exchange.Masked(value, find)
			if shows && values[i] != value {
				delete(r.Header, name)
				break
			}
		}
	}
	r.URL.RawQuery = exchange.Masked(r.URL.RawQuery, find)
	path := r.URL.EscapedPath()
	if masked := exchange.Masked(path, find); masked != path {
		r.URL.Path, r.URL.RawPath = masked, ""
		if plain, err := url.PathUnescape(masked); err == nil {
			r.URL.Path, r.URL.RawPath = plain, masked
		}
	}
}

// headText is all of a request's head in which a token may stand.
func headText(r *http.Request) string {
	const between = " | " // which no writing of a token goes on over
	var all strings.Builder
	all.WriteString(r.URL.EscapedPath() + between + r.URL.RawQuery)
	for _, values := range r.Header {
		for _, value := range values {
			all.WriteString(between + value)
		}
	}
	return all.String()
}

// tokenFinder finds this daemon's tokens, and those that are given.
func tokenFinder(access []string) func(text []byte, visit func(from, to int)) {
	return func(text []byte, visit func(from, to int)) {
		if bytes.Contains(text, []byte("e2b_")) {
			for _, at := range apiKey.FindAllIndex(text, -1) {
				visit(at[0], at[1])
			}
		}
		for _, token := range access {
			for from := 0; ; {
				at := bytes.Index(text[from:], []byte(token))
				if at < 0 {
					break
				}
				visit(from+at, from+at+len(token))
				from += at + len(token)
			}
		}
	}
}
