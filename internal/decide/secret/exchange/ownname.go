package exchange

import (
	"slices"
	"strings"
)

// foldName folds a name as servers may: CGI and WSGI make one variable of many names.
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

// foldField folds a header field, as foldName does, without the mark of gRPC's binary ones.
func foldField(name string) string {
	if cut := len(name) - len("-bin"); cut > 0 && strings.EqualFold(name[cut:], "-bin") {
		name = name[:cut]
	}
	return foldName(name)
}

// foldParameter returns what servers may call a parameter: its name, and without what makes it one of
// a list (token[], token[0]) or a member of something (token[a]).
func foldParameter(name string) []string {
	base, _, listed := strings.Cut(name, "[")
	if !listed {
		return []string{foldName(name)}
	}
	return []string{foldName(base), foldName(name)}
}

// holdsKey tells whether a header or parameter of this name, folded, commonly holds a
// credential.
func holdsKey(is string) bool {
	has := func(part string) bool { return strings.Contains(is, part) }
	others := []string{"csrf", "xsrf", "continuation", "page", "next", "sync", "cancel", "idempotency", "design"}
	if slices.ContainsFunc(others, has) && !slices.ContainsFunc([]string{"access", "apikey", "authorization", "authtoken"}, has) {
		return false
	}
	for _, end := range []string{"paginationtoken", "skiptoken", "deltatoken", "resumptiontoken", "atlassiantoken"} { // where to go on, and no-check
		if strings.HasSuffix(is, end) {
			return false
		}
	}
	for _, end := range []string{
		"authorization", "apikey", "token", "authkey", "accesskey", "accesskeyid", "secretkey", "accountkey", "subscriptionkey", "functionskey", "secret", "password", "passwd", "passphrase",
		"applicationkey", "appkey", "masterkey", "privatekey", "sharedkey", "authentication", "assertion", "jwt", "bearer", "credential", "credentials", "signature", "xauth", "xauthuser",
	} {
		if strings.HasSuffix(is, end) {
			return true
		}
	}
	return strings.Contains(is, "apikey") || strings.HasPrefix(is, "bearer")
}

// shortKeys are names, folded, that hold a credential if they are no part of a longer one.
func shortKeys() []string { return []string{"key", "auth", "sig", "jwt", "pwd"} }

// parameterHoldsKey is holdsKey of what a query or a path has. Sessions have names of their own
// there; "session_id" and "sid" are none of them, since many services mean something else.
func parameterHoldsKey(is string) bool {
	sessions := []string{"jsessionid", "phpsessid", "sessid", "aspnetsessionid"}
	return holdsKey(is) || slices.Contains(shortKeys(), is) || slices.Contains(sessions, is) || strings.HasPrefix(is, "aspsessionid")
}

// bodyHoldsKey is holdsKey of what a form or JSON has that a client sends to prove who it is.
// Tokens and codes are what such a request is about.
func bodyHoldsKey(is string) bool {
	for _, end := range []string{"secret", "password", "passwd", "passphrase", "apikey", "secretkey", "accesskey", "privatekey", "clientassertion", "authorization"} {
		if strings.HasSuffix(is, end) {
			return true
		}
	}
	return false
}

// proves tells whether a part of an Authorization header of this name, folded, proves that the
// client has a key of its own: what Digest, Hawk, MAC and signatures send in place of one, and what
// services call their keys. OAuth's consumer key is a client's name.
func proves(is string) bool {
	return holdsKey(is) || strings.HasSuffix(is, "key") && !strings.HasSuffix(is, "consumerkey") || slices.Contains(shortKeys(), is) || slices.Contains([]string{"response", "mac", "hash", "digest", "proof", "pass", "code", "ticket", "session", "sessionid", "sid", "nonce", "cnonce"}, is)
}
