package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxRecord is the longest line that Append takes, in bytes, newline included.
const MaxRecord = 256 << 10

// unstamped is how every encoded record begins before the writer gives it its
// place: the fields that only the writer knows come first.
const unstamped = `{"seq":0,"timestamp":"0001-01-01T00:00:00Z"`

// encodedRecord is a record as it stands in the log: without what is personal, for which
// there is a commitment (see personal.go).
type encodedRecord struct {
	Record

	// Owner is the commitment to whose run it is, see owner.go, in the place of Personal.
	Owner string `json:"owner,omitempty"`
	// Personal is always the last field of a line, where there is one.
	Personal string `json:"personal,omitempty"`
}

// encodeBody encodes a record as its line without the stamp: what follows the first
// two fields, newline included. The encoding is canonical: fields in the order
// of Record, map keys sorted, no optional white space, invalid UTF-8 replaced by
// U+FFFD, and that and every control or format character (terminal escapes, text
// direction) written as \uXXXX. A line decoded and encoded again gives the same
// bytes, so a hash of the line is a hash of the record.
func encodeBody(l encodedRecord) ([]byte, error) {
	l.Seq, l.Time, l.Clock, l.Erased = 0, time.Time{}, time.Time{}, false
	text, err := canonical(l)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the record can't be written as JSON")
	}
	if len(text)+64 > MaxRecord {
		return nil, fault.Invalid("the record is %d bytes long; the log takes at most %d", len(text), MaxRecord)
	}
	return text[len(unstamped):], nil
}

// canonical is the JSON of a value as body describes it, newline included.
func canonical(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escapeControls(buf.Bytes()), nil
}

// stampTime is when a record is made: wall is what the host's clock says where that is
// something else, and zero where it is not.
type stampTime struct{ time, wall time.Time }

// appendStamped appends the whole line to dst.
func appendStamped(dst []byte, seq uint64, at stampTime, rest []byte) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, `,"timestamp":"`...)
	dst = at.time.AppendFormat(dst, time.RFC3339Nano)
	if !at.wall.IsZero() {
		dst = append(dst, `","clock":"`...)
		dst = at.wall.AppendFormat(dst, time.RFC3339Nano)
	}
	dst = append(dst, '"')
	return append(dst, rest...)
}

// escapeControls writes control and format characters outside ASCII, and DEL,
// as \uXXXX. They can only stand inside JSON strings, so no parsing is needed.
func escapeControls(line []byte) []byte {
	first := bytes.IndexFunc(line, unprintable)
	if first < 0 {
		return line
	}
	out := append(make([]byte, 0, len(line)+32), line[:first]...)
	for rest := line[first:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if unprintable(r) {
			out = appendEscape(out, r)
		} else {
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out
}

func unprintable(r rune) bool {
	// U+FFFD: package json escapes it where it replaces, and not where it was
	// in the string; here both are one spelling.
	return r == utf8.RuneError || r >= 0x7f && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

func appendEscape(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	units := []rune{r}
	if r > 0xffff {
		r -= 0x10000
		units = []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
	}
	for _, u := range units {
		dst = append(dst, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	return dst
}

// seqOf reads a line's sequence number without decoding the rest.
func seqOf(line []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte(","))
	if !ok || len(digits) > 20 {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	return seq, err == nil
}

// decodeLine reads one line and checks that it is the record with this number.
func decodeLine(text []byte, want uint64) (encodedRecord, error) {
	var l encodedRecord
	if got, ok := seqOf(text); !ok || got != want {
		return l, fault.Invalid("the log is damaged: record %d is not where it belongs", want)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fault.Wrap(fault.ErrInvalid, err, "the log is damaged: record %d can't be read", want)
	}
	return l, nil
}
