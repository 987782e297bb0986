package exchange

import (
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxText bounds a manner's texts, in bytes.
const maxText = 200

// NewManner checks how a secret is put, as an operator wrote it, and fills in what was left
// out. An error begins with the key that is wrong.
func NewManner(m Manner) (Manner, error) {
	m.Header = http.CanonicalHeaderKey(m.Header)
	if m.IsZero() {
		m.Where = []Place{Header, Basic}
		return m, nil
	}
	if m.Sign != "" {
		return m, m.checkSigning()
	}
	if err := m.checkHeader(); err != nil {
		return m, err
	}
	if len(m.Where) > 0 {
		return m, m.checkPlaces()
	}
	switch {
	case m.Header == "":
		return m, fault.Invalid(".header is missing: which one is set")
	case m.Format != "" && m.User != "":
		return m, fault.Invalid(".user and format exclude each other")
	case strings.Contains(m.User, ":"):
		return m, fault.Invalid(".user has a colon, which no user of basic authentication has")
	case !printable(m.User):
		return m, fault.Invalid(".user may have printable ASCII only, at most %d letters", maxText)
	case !printable(m.Format):
		return m, fault.Invalid(".format may have printable ASCII only, at most %d letters", maxText)
	case m.User != "":
	case m.Format == "" && m.Header == "Authorization":
		m.Format = "Bearer " + Variable
	case m.Format == "":
		m.Format = Variable
	}
	if m.User == "" && strings.Count(m.Format, Variable) != 1 {
		return m, fault.Invalid(".format must have %s in it, once", Variable)
	}
	return m, nil
}

// IsZero tells whether nothing is said.
func (m Manner) IsZero() bool {
	return len(m.Where) == 0 && m.Header == "" && m.Format == "" && m.User == "" && m.Sign == ""
}

// checkSigning looks at a manner that signs.
func (m Manner) checkSigning() error {
	if m.Sign = ""; !m.IsZero() {
		return fault.Invalid(" signs requests, and so has none of header, format, user and where")
	}
	return nil
}

func (m Manner) checkHeader() error {
	switch {
	case m.Header == "":
	case len(m.Header) > maxText || strings.Trim(strings.ToLower(m.Header), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return fault.Invalid(".header may have letters, digits, - and _ only")
	case slices.Contains(reservedHeaders(), m.Header):
		return fault.Invalid(".header %s is not for secrets: requests are read by it", m.Header)
	}
	return nil
}

// checkPlaces looks at a manner that swaps.
func (m Manner) checkPlaces() error {
	switch {
	case m.Format != "":
		return fault.Invalid(".format is for a header that is set; with where, the client writes it")
	case m.User != "":
		return fault.Invalid(".user is for a header that is set; with where, the client writes it")
	case m.Header != "" && !m.swapsIn(Header):
		return fault.Invalid(".header has no effect: the placeholder is not swapped in headers")
	}
	for _, p := range m.Where {
		if !slices.Contains(Places(), p) {
			return fault.Invalid(".where has %q; it has some of header, basic, query, path and body", string(p))
		}
	}
	return nil
}

// reservedHeaders are those by which it is told where a request goes and where it ends.
func reservedHeaders() []string {
	return []string{
		"Host", "Content-Length", "Content-Encoding", "Content-Type", "Accept-Encoding", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer",
		"Expect", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate",
	}
}

func printable(s string) bool {
	return len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
