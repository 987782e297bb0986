package requests

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// checkMeant tells what is wrong with a request, nil if it means this connection's host.
func (c *Carrier) checkMeant(r *http.Request) *Refusal {
	refusal := func(status int, reason string) *Refusal {
		return &Refusal{Rule: door.RuleHostHTTP, Reason: reason, Status: status}
	}
	scheme := "http"
	if c.config.Ended != nil {
		scheme = "https"
	}
	upgrade := strings.ToLower(r.Header.Get("Upgrade"))
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.Method == "PRI":
		return refusal(http.StatusMethodNotAllowed, "a request has a method that is not passed on")
	case len(r.Method) > maxMethod:
		return refusal(http.StatusNotImplemented, "a request has a method that is longer than "+strconv.Itoa(maxMethod)+" bytes")
	case !c.isAuthority(r.Host) || r.URL.Host != "" && !c.isAuthority(r.URL.Host) || c.config.Ended != nil && c.named != c.config.Name:
		return refusal(http.StatusMisdirectedRequest, "a request is to another authority than "+c.config.Name+", to which the connection is")
	case r.URL.Scheme != "" && r.URL.Scheme != scheme || r.URL.User != nil || !strings.HasPrefix(r.URL.Path, "/"):
		return refusal(http.StatusBadRequest, "a request's target is none of this host")
	case len(r.URL.EscapedPath()) > maxPath:
		return refusal(http.StatusRequestURITooLong, "a request has a path that is too long")
	case upgrade != "" && upgrade != "websocket" || len(r.Header.Values("Upgrade")) > 1:
		return refusal(http.StatusBadRequest, "a request wants to go on in a protocol that is not passed on")
	}
	return nil
}

// authority is the host as the requests that are sent name it.
func (c *Carrier) authority() string {
	return net.JoinHostPort(c.config.Name, strconv.Itoa(c.config.Port))
}

// isAuthority tells whether an authority is this connection's.
func (c *Carrier) isAuthority(authority string) bool {
	host, port, found := strings.Cut(authority, ":")
	if found && port != strconv.Itoa(c.config.Port) {
		return false
	}
	return lowerASCII(host) == c.config.Name
}

// lowerASCII returns s with its ASCII letters in lower case, and no other ones.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
