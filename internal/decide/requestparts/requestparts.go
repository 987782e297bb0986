// Package requestparts lists the parts of a request that a server can read, and all that it may take a
// body for. Code that looks for something in requests looks through these lists, so that there is
// no part that one check sees and another does not. It does no I/O.
//
// A body has several readings, because a server may take it as it is, without the codings that its
// header names, as its messages, as its parts, or in other letters.
package requestparts

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Place is where in a request a part is.
type Place string

// The places. Over HTTP/2 the method, the host, the path and the query are its pseudo-fields, and
// with gRPC the fields are its metadata. Lengths and extensions of HTTP's own chunks end here: the
// request is sent in others.
const (
	Method       Place = "method"
	Host         Place = "host"
	User         Place = "user in the URL"
	Path         Place = "path"
	Query        Place = "query"
	FieldName    Place = "a header's name"
	FieldValue   Place = "header"
	TrailerName  Place = "a trailer's name"
	TrailerValue Place = "trailer"
	BodyText     Place = "body"
)

// Places are all places, in the order in which a request has them.
func Places() []Place {
	return []Place{Method, Host, User, Path, Query, FieldName, FieldValue, BodyText, TrailerName, TrailerValue}
}

// Part is one text of a request.
type Part struct {
	Place Place
	Name  string // of the field; "" elsewhere
	Text  string
	// Meant tells that nobody wrote the text like this: it is what a server reads out of it.
	Meant bool
	// Caseless tells that the letters may have been other ones than they are, or become others on
	// the way: names have no case.
	Caseless bool
}

// Where is the part's place in words: "header X-Key".
func (p Part) Where() string {
	if p.Place == FieldValue || p.Place == TrailerValue {
		return string(p.Place) + " " + p.Name
	}
	return string(p.Place)
}

// Head are the parts that come before a body, as they are written and as servers read them.
func Head(r *http.Request) []Part {
	all := []Part{
		{Place: Method, Text: r.Method, Caseless: true},
		{Place: Host, Text: r.Host, Caseless: true},
		{Place: Path, Text: r.URL.EscapedPath()},
		{Place: Query, Text: r.URL.RawQuery},
	}
	if r.URL.Host != "" && r.URL.Host != r.Host {
		all = append(all, Part{Place: Host, Text: r.URL.Host, Caseless: true})
	}
	if r.URL.User != nil {
		all = append(all, Part{Place: User, Text: r.URL.User.String()})
	}
	if r.URL.Path != r.URL.EscapedPath() {
		all = append(all, Part{Place: Path, Text: r.URL.Path, Meant: true})
	}
	for _, meant := range inQuery(r.URL.RawQuery) {
		all = append(all, Part{Place: Query, Text: meant, Meant: true})
	}
	if user, password, given := r.BasicAuth(); given {
		all = append(all, Part{Place: FieldValue, Name: "Authorization", Text: user, Meant: true}, Part{Place: FieldValue, Name: "Authorization", Text: password, Meant: true})
	}
	return append(all, fields(r.Header, FieldName, FieldValue)...)
}

// Trailer are the parts that come behind a body, as far as they have come.
func Trailer(trailer http.Header) []Part { return fields(trailer, TrailerName, TrailerValue) }

// fields are the names and values of a header or trailer.
func fields(h http.Header, name, value Place) (all []Part) {
	for _, field := range slices.Sorted(maps.Keys(h)) {
		all = append(all, Part{Place: name, Name: field, Text: field, Caseless: true})
		for _, text := range h[field] {
			all = append(all, Part{Place: value, Name: field, Text: text})
			for _, meant := range inBinary(field, text) {
				all = append(all, Part{Place: value, Name: field, Text: meant, Meant: true})
			}
		}
	}
	return all
}

// inBinary are the bytes that a field of gRPC's has in base64, of which there may be several.
func inBinary(field, value string) (all []string) {
	if !strings.HasSuffix(strings.ToLower(field), "-bin") {
		return nil
	}
	for one := range strings.SplitSeq(value, ",") {
		if text, ok := unbase64(strings.TrimSpace(one)); ok {
			all = append(all, string(text))
		}
	}
	return all
}

// inQuery are the texts that parameters of a query have in base64: of Connect's requests by GET
// that is the message, if they say so. A server that does not know them reads the query as it is.
func inQuery(raw string) (all []string) {
	query, err := url.ParseQuery(raw)
	if err != nil && len(query) == 0 || !query.Has("message") && !query.Has("base64") {
		return nil
	}
	for _, value := range query["message"] {
		if text, ok := unbase64(value); ok {
			all = append(all, string(text))
		}
	}
	return all
}

// UnreadQuery is why a server may read something in a query that nobody sees here; "": it does not.
func UnreadQuery(raw string) string {
	query, err := url.ParseQuery(raw)
	if err != nil && len(query) == 0 || !query.Has("message") {
		return ""
	}
	for _, coding := range query["compression"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return "its message in the query is compressed"
		}
	}
	return ""
}

// unbase64 decodes a text in either alphabet, with its end or without.
func unbase64(text string) ([]byte, bool) {
	plain := strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "", "\t", "").Replace(text)
	plain = strings.TrimRight(plain, "=")
	if plain == "" {
		return nil, false
	}
	out, err := base64.RawStdEncoding.DecodeString(plain)
	return out, err == nil
}
