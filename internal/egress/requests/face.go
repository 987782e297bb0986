package requests

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/secret/exchange"
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
	case ends("originalmethod", "forwardedmethod", "rewritemethod"):
		return true
	}
	place := ends("url", "uri", "path", "prefix", "host", "pathinfo", "query", "querystring", "authority", "server")
	return place && has("original", "rewrite", "rewritten", "override", "forwarded", "replaced", "envoy", "proxyurl", "xproxy", "realurl", "realuri", "xrequest") || has("urloverride", "urioverride", "pathoverride", "hostoverride")
}

// twoFaced refuses a judged request that a server could take for another one.
func twoFaced(r *http.Request) *Refusal {
	for name, values := range r.Header {
		if otherFace(name, strings.Join(values, ",")) {
			return otherFaced("the field " + excerpt.Of(name, 60))
		}
	}
	return nil
}

func otherFaced(by string) *Refusal {
	return &Refusal{Rule: door.RuleHostHTTP, Status: http.StatusBadRequest, Reason: "a request has " + by + ", by which it could be taken for another one than is judged"}
}

// methodKey tells whether frameworks take a key of a query or form for the method: _method,
// as they fold it, and the names of fields that do so.
var methodKey = regexp.MustCompile(`(?i)^[^a-z0-9]+method$|method[^a-z0-9]*override|http[^a-z0-9]*method`)

// overridden refuses a request whose query or form could give it another method. The form is
// looked through while it is sent.
func overridden(r *http.Request) *Refusal {
	for part := range strings.FieldsFuncSeq(r.URL.RawQuery, separates) {
		if key, _, _ := strings.Cut(part, "="); methodKey.MatchString(exchange.UnescapeForm(key)) {
			return otherFaced("the parameter _method")
		}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	// Without a type some servers take a body for a form, and no two read a bad one alike.
	kind := strings.ToLower(strings.Join(r.Header.Values("Content-Type"), ","))
	if strings.Contains(kind, "multipart") {
		r.Body = &form{ReadCloser: r.Body, parts: true}
	}
	if strings.TrimSpace(kind) == "" || strings.Contains(kind, "urlencoded") {
		r.Body = &form{ReadCloser: r.Body}
	}
	return nil
}

func separates(c rune) bool { return c == '&' || c == ';' }

// maxKey bounds what is kept of a form to find a key in it, in bytes.
const maxKey = 256

// form is a body that fails at a key that gives the request another method.
type form struct {
	io.ReadCloser
	parts bool // it is multipart
	kept  []byte
	cut   bool // what is kept begins in a field that is longer than what is kept
}

// Read implements io.Reader.
func (f *form) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.kept = append(f.kept, p[:n]...)
	if f.has(err != nil) {
		return 0, otherFaced("the form's field _method")
	}
	f.forget()
	return n, err
}

// forget keeps what the next key may begin with.
func (f *form) forget() {
	from := max(0, len(f.kept)-maxKey)
	if last := strings.LastIndexFunc(string(f.kept), separates); last >= from && !f.parts {
		from, f.cut = last+1, false
	} else if from > 0 {
		f.cut = true
	}
	f.kept = append(f.kept[:0], f.kept[from:]...)
}

// partName is what begins a part's name.
var partName = regexp.MustCompile(`(?i)\bname\*?\s*=\s*(?:utf-8'[^']*')?"?([^";\r\n]{1,99})["; \r\n]`)

// has tells whether what is kept has such a key.
func (f *form) has(last bool) bool {
	if f.parts {
		for _, found := range partName.FindAllSubmatch(f.kept, -1) {
			if methodKey.MatchString(exchange.UnescapeForm(string(found[1]))) {
				return true
			}
		}
		return false
	}
	fields := strings.Split(strings.ReplaceAll(string(f.kept), ";", "&"), "&")
	for i, field := range fields {
		if i == 0 && f.cut {
			continue
		}
		key, _, whole := strings.Cut(field, "=")
		if (whole || i < len(fields)-1 || last) && methodKey.MatchString(exchange.UnescapeForm(key)) {
			return true
		}
	}
	return false
}
