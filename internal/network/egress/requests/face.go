package requests

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// folded is a field's name as servers may fold it: in lower case, its letters and digits
// alone. CGI and WSGI make one variable of many names.
func folded(name string) string {
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

// otherFace tells whether some server takes a request by this field for one with another
// method, or for another place, than its first line says. There is no whole list of such
// fields, so it goes by the words that they are made of.
func otherFace(name, value string) bool {
	is := folded(name)
	ends := func(all ...string) bool {
		return slices.ContainsFunc(all, func(end string) bool { return strings.HasSuffix(is, end) })
	}
	has := func(all ...string) bool {
		return slices.ContainsFunc(all, func(part string) bool { return strings.Contains(is, part) })
	}
	switch {
	case is == "forwarded":
		return strings.Contains(folded(value), "host")
	case slices.Contains([]string{"method", "xmethod", "xverb", "xhost", "xurl", "xuri", "xpath", "xpathinfo", "pathinfo", "requesturi", "requesturl", "scriptname", "xscriptname", "destination"}, is):
		return true // the last is WebDAV's
	case has("methodoverride", "overridemethod", "httpmethod", "verboverride") && !strings.HasPrefix(is, "accesscontrol"):
		return true
	case ends("originalmethod", "origmethod", "forwardedmethod", "rewritemethod", "realmethod", "requestmethod") && !strings.HasPrefix(is, "accesscontrol"):
		return true
	}
	place := ends("url", "uri", "path", "prefix", "host", "pathinfo", "query", "querystring", "authority", "server")
	return place && has(
		"orig", "rewrite", "rewritten", "override", "forward", "replaced", "envoy", "proxyurl", "xproxy", "xrequest", "xreal", "realurl", "realuri", "realpath", "realhost",
		"ingress", "xbase", "target", "upstream", "backend", "invoke", "matched", "internal", "effective", "unencoded", "mount", "servlet", "xraw", "xcontext",
	) || has("urloverride", "urioverride", "pathoverride", "hostoverride")
}

// framings are the fields, folded, by which a body's end, coding and form are known, and to
// which host a request is. Servers that fold names read them under another spelling, too: beside
// the true one, or alone.
func framings() map[string]string {
	return map[string]string{
		"contenttype": "Content-Type", "contentencoding": "Content-Encoding", "contentlength": "Content-Length", "transferencoding": "Transfer-Encoding",
		"connection": "Connection", "trailer": "Trailer", "upgrade": "Upgrade", "expect": "Expect", "host": "Host", "grpcencoding": "Grpc-Encoding",
		"connectcontentencoding": "Connect-Content-Encoding", "xcontentencoding": "", "xtransferencoding": "", "xcontenttype": "",
	}
}

// misspelt tells whether a field is one of these under another name.
func misspelt(name string) bool {
	is, known := framings()[folded(name)]
	return known && !strings.EqualFold(name, is)
}

// twoFaced refuses a judged request that a server could take for another one.
func twoFaced(r *http.Request) *Refusal {
	for name, values := range r.Header {
		if otherFace(name, strings.Join(values, ",")) || misspelt(name) {
			return otherFaced("the field " + redact.Cut(name, 60))
		}
	}
	if len(r.Trailer) == 0 || r.Body == nil {
		return nil // without an announced one none is sent
	}
	r.Body = &trailed{r.Body, r.Trailer}
	return trailing(r.Trailer)
}

// trailing refuses what would be another face, or framing, behind the body: servers there are
// that take it for a field of the header.
func trailing(trailer http.Header) *Refusal {
	for name, values := range trailer {
		if _, framing := framings()[folded(name)]; framing || otherFace(name, strings.Join(values, ",")) {
			return otherFaced("the trailing field " + redact.Cut(name, 60))
		}
	}
	return nil
}

// trailed is a body with fields behind it, which may be others than were announced. It does not
// end where one of them is refused.
type trailed struct {
	io.ReadCloser
	trailer http.Header
}

// Read implements io.Reader.
func (t *trailed) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		if refusal := trailing(t.trailer); refusal != nil {
			return 0, refusal
		}
	}
	return n, err
}

func otherFaced(by string) *Refusal {
	return &Refusal{Rule: door.RuleHostHTTP, Status: http.StatusBadRequest, Reason: "a request has " + by + ", by which it could be taken for another one than is judged"}
}
