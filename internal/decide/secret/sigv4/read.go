// Package sigv4 has requests signed anew that a client signed with AWS Signature Version 4
// and a placeholder for its key: what the client signed is read from the request, and signed
// with the real key. Nothing of the client's signature is looked at, since anybody could have
// made it. It does no I/O.
package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The header fields of the scheme.
const (
	authorization = "Authorization"
	payloadHeader = "X-Amz-Content-Sha256"
	dateHeader    = "X-Amz-Date"
	tokenHeader   = "X-Amz-Security-Token" //nolint:gosec // a name
)

// Header are the fields that a signature brings. A client's own ones of these names do not
// leave.
func Header() []string { return []string{authorization, dateHeader, tokenHeader} }

const algorithm = "AWS4-HMAC-SHA256"

// Bounds of what a client may have signed.
const (
	maxFields = 100
	maxHeader = 64 << 10 // bytes of all of them
)

// Scope is what a client's signature says of itself.
type Scope struct {
	Key     string // its id
	Region  string
	Service string
	fields  []string // the names of those that it signed, in lower case
}

// Read reads the signature in a request's header; signed is false if it has none that is
// meant for AWS.
func Read(h http.Header) (s Scope, signed bool, err error) {
	values := h[authorization]
	if !slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "AWS") }) {
		return s, false, nil
	}
	if len(values) != 1 {
		return s, true, fault.Invalid("a request is signed twice")
	}
	scheme, rest, _ := strings.Cut(values[0], " ")
	if scheme != algorithm {
		return s, true, fault.Invalid("a request is signed by a scheme other than %s, and only that one is signed anew; have the client sign with Signature Version 4", algorithm)
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[key] = value
	}
	scope := strings.Split(parts["Credential"], "/")
	if len(scope) < 5 || scope[len(scope)-1] != "aws4_request" || parts["SignedHeaders"] == "" {
		return s, true, fault.Invalid("a request's signature can't be read: it has no credential scope, or does not say what it signs")
	}
	n := len(scope)
	s = Scope{Key: strings.Join(scope[:n-4], "/"), Region: scope[n-3], Service: scope[n-2], fields: strings.Split(strings.ToLower(parts["SignedHeaders"]), ";")}
	return s, true, s.checkScope()
}

var scopeName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// checkScope refuses what no service is called.
func (s Scope) checkScope() error {
	switch {
	case !scopeName.MatchString(s.Region) || !scopeName.MatchString(s.Service):
		return fault.Invalid("a request's signature is for a region or a service whose name has other characters than a-z, 0-9 and -")
	case len(s.fields) > maxFields:
		return fault.Invalid("a request's signature is over more than %d header fields", maxFields)
	case !slices.Contains(s.fields, "host"):
		return fault.Invalid("a request's signature is not over its host")
	}
	return nil
}

// Presigned tells whether a request has a signature in its URL, of this version or of 2.
func Presigned(r *http.Request) bool {
	query := strings.ToLower(r.URL.RawQuery)
	return strings.Contains(query, "x-amz-signature=") || strings.Contains(query, "x-amz-credential=") || strings.Contains(query, "awsaccesskeyid=")
}

// Request is what is signed of one.
type Request struct {
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	Path    string      `json:"path"` // as it is sent
	Query   string      `json:"query,omitempty"`
	Header  http.Header `json:"header,omitempty"`
	Length  int64       `json:"length,omitempty"` // of the body, if that is signed
	Payload string      `json:"payload"`          // the body's hash, or a word in its place
	Region  string      `json:"region"`
	Service string      `json:"service"`
}

// NeedsBody tells whether the body has to be read to be signed: the request does not say its
// hash.
func NeedsBody(h http.Header) bool { return h.Get(payloadHeader) == "" }

// Over is what is to be signed of a request, by what its client signed. A body that was read
// is whole. Encoding is what the request will say that it takes.
func (s Scope) Over(r *http.Request, body []byte, whole bool, encoding string) (Request, error) {
	payload, err := payloadOf(r, body, whole)
	if err != nil {
		return Request{}, err
	}
	to := Request{
		Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: http.Header{},
		Payload: payload, Region: s.Region, Service: s.Service,
	}
	size := 0
	for _, name := range s.fields {
		name = http.CanonicalHeaderKey(name)
		switch {
		case name == "Host" || slices.Contains(Header(), name):
		case name == "Content-Length":
			if to.Length = r.ContentLength; whole {
				to.Length = int64(len(body))
			}
		case name == "Accept-Encoding":
			to.Header.Set(name, encoding)
		case len(r.Header[name]) > 0:
			to.Header[name] = slices.Clone(r.Header[name])
		}
		for _, v := range to.Header[name] {
			size += len(name) + len(v)
		}
	}
	if size > maxHeader {
		return Request{}, fault.Invalid("a request's signature is over more than %d bytes of its header", maxHeader)
	}
	return to, nil
}

var payloadHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// payloadOf is the hash of a body, or what stands in its place.
func payloadOf(r *http.Request, body []byte, whole bool) (string, error) {
	said := r.Header.Get(payloadHeader)
	switch {
	case said == "" && (r.Body == nil || r.Body == http.NoBody):
		return hashed(nil), nil
	case said == "" && !whole:
		return "", fault.Invalid("a request's body is to be signed, and it has no %s and more bytes than are read for that", payloadHeader)
	case said == "":
		return hashed(body), nil
	case payloadHash.MatchString(said), said == "UNSIGNED-PAYLOAD", said == "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		return said, nil
	case strings.HasPrefix(said, "STREAMING-"):
		return "", fault.Invalid("a request signs each chunk of its body (%s), which can't be signed anew while it is sent; have the client leave the body unsigned, as it may over TLS", excerptOf(said))
	}
	return "", fault.Invalid("a request's %s is neither a hash nor a word for an unsigned body", payloadHeader)
}

var fromOddCharacter = regexp.MustCompile(`[^A-Z0-9-].*`)

// excerptOf is the beginning of a client's word, if it can be shown.
func excerptOf(word string) string {
	return fromOddCharacter.ReplaceAllString(word[:min(len(word), 60)], "")
}

func hashed(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
