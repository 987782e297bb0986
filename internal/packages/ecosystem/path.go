package ecosystem

import (
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxPath bounds a request's path. The longest that a real registry has are
// some 300 bytes.
const maxPath = 2048

// unreserved never needs encoding, so an encoded one is a second spelling.
const unreserved = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"

// reserved may come encoded or not: clients differ.
const reserved = "!$&'()*+,;=:@"

// Segments splits a raw escaped path at its slashes and decodes each segment
// once. It refuses what could be read in two ways: an empty segment, "." and
// "..", anything that decodes to a slash, a backslash, a percent sign, a
// control or a non-ASCII character, and an encoded character that needs no
// encoding. slash tells whether the path ends in one.
func Segments(escaped string) (segments []string, slash bool, err error) {
	if len(escaped) > maxPath {
		return nil, false, fault.Invalid("the path has %d bytes; at most %d are read", len(escaped), maxPath)
	}
	rest, ok := strings.CutPrefix(escaped, "/")
	if !ok {
		return nil, false, fault.Invalid("the path does not begin with a slash")
	}
	rest, slash = strings.CutSuffix(rest, "/")
	if rest == "" {
		return nil, true, nil
	}
	for raw := range strings.SplitSeq(rest, "/") {
		s, err := decodeSegment(raw)
		if err != nil {
			return nil, false, err
		}
		segments = append(segments, s)
	}
	return segments, slash, nil
}

func decodeSegment(raw string) (string, error) {
	if raw == "" || raw == "." || raw == ".." {
		return "", fault.Invalid("the path has an empty, \".\" or \"..\" segment")
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '%' {
			if !strings.Contains(unreserved+reserved, string(rune(c))) {
				return "", fault.Invalid("the path has the byte 0x%02x, which no package path has", c)
			}
			b.WriteByte(c)
			continue
		}
		if i+2 >= len(raw) {
			return "", fault.Invalid("the path ends inside a percent encoding")
		}
		d, err := url.PathUnescape(raw[i : i+3])
		if err != nil {
			return "", fault.Invalid("the path has an invalid percent encoding")
		}
		if !strings.Contains(reserved, d) {
			return "", fault.Invalid("the path encodes the byte 0x%02x, which would be a second spelling", d[0])
		}
		b.WriteString(d)
		i += 2
	}
	return b.String(), nil
}

// PathOf is the one spelling of an escaped path by which a request and an
// index's URL are compared.
func PathOf(escaped string) (string, error) {
	segments, slash, err := Segments(escaped)
	if err != nil {
		return "", err
	}
	p := "/" + strings.Join(segments, "/")
	if slash && len(segments) > 0 {
		p += "/"
	}
	return p, nil
}
