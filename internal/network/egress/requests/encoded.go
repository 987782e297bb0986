package requests

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// Bounds of an encoded body in which keys are looked for, in bytes. A longer one is refused.
const (
	maxEncoded  = 4 << 20
	maxDecoded  = 64 << 20
	decoderCost = 128 << 10
)

// codingOf is how a body is encoded by what these fields say: "" not at all, or all codings that they
// name.
func codingOf(h http.Header, fields ...string) string {
	var all []string
	for _, field := range fields {
		for _, value := range h.Values(field) {
			for one := range strings.SplitSeq(strings.ToLower(value), ",") {
				// Uploads to object stores have lengths between their pieces (aws-chunked). A
				// server that takes those out takes no method from a body; others read it as it is,
				// as we do.
				if one = strings.TrimSpace(one); one != "" && one != "identity" && one != "aws-chunked" {
					all = append(all, one)
				}
			}
		}
	}
	return strings.Join(all, ", ")
}

// readEncoded reads a body whole, looks for keys in what it says once it is decoded and, since a
// server need not decode it, in what it is. It is sent as it came.
func (c *Carrier) readEncoded(r *http.Request, coding string, readers []keyReader) *Refusal {
	raw, done, refusal := c.keepEncoded(r, decoderCost)
	if refusal != nil {
		return refusal
	}
	defer done()
	if len(raw) > maxEncoded {
		return unreadable("encoded and has more than 4 MiB")
	}
	if coding != "gzip" && coding != "x-gzip" { // what deflate is, servers do not agree about
		return unreadable("encoded in a way that is not read here (" + redact.Cut(coding, 40) + ")")
	}
	decoded, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return unreadable("not encoded as it says")
	}
	asIs, _ := readersOf(r.Header)
	for _, one := range asIs {
		if keys, ok := one.(*jsonKeys); ok {
			keys.framed = true // what gzip makes has zero bytes in it
		}
	}
	if refusal := lookThrough(bytes.NewReader(raw), asIs); refusal != nil {
		return refusal
	}
	return lookThrough(decoded, readers)
}

// keepEncoded reads an encoded body, or the beginning of one that is too long, which is sent as it
// came. decoder is what decoding it takes, in bytes; done gives back what keeping it does not take any
// more.
func (c *Carrier) keepEncoded(r *http.Request, decoder int64) (raw []byte, done func(), refusal *Refusal) {
	most := int64(maxEncoded)
	if r.ContentLength >= 0 {
		most = min(most, r.ContentLength)
	}
	if err := TakePlace(r, c.config.Searches, 2*most+decoder); err != nil {
		return nil, nil, noPlace(err)
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxEncoded+1))
	if refusal, ok := asRefusal(err); ok {
		return nil, nil, refusal
	}
	if err != nil {
		return nil, nil, refuseBroken()
	}
	rest := r.Body // whose end may have come, and who closes it
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(raw), rest), rest}
	return raw, func() { Return(r, 2*most+decoder-min(int64(len(raw)), 2*most+decoder)) }, nil
}

// readUnsaid looks for keys in an encoded body whose type says neither form nor JSON. Of one that is
// too long to be kept the beginning tells whether a server could read an object in it: forms have less.
func (c *Carrier) readUnsaid(r *http.Request, coding string) *Refusal {
	cost := int64(decoderCost)
	if strings.Contains(coding, "zstd") {
		cost = requestparts.DecoderCost
	}
	if strings.Contains(coding, ",") { // what is between two codings is kept, twice while it grows
		cost += 2 * maxEncoded
	}
	raw, done, refusal := c.keepEncoded(r, cost)
	if refusal != nil {
		return refusal
	}
	defer done()
	if len(raw) > maxEncoded {
		if (coding == "gzip" || coding == "x-gzip") && !beginsObject(raw) {
			return nil
		}
		return unreadable("encoded and has more than 4 MiB")
	}
	readers, _ := readersOf(r.Header)
	if refusal := lookThrough(bytes.NewReader(raw), readers); refusal != nil {
		return refusal
	}
	header := http.Header{"Content-Type": r.Header["Content-Type"], "Content-Encoding": r.Header["Content-Encoding"]}
	decoded, why := requestparts.BodyOf(header).Open(raw, maxEncoded)
	if why != "" {
		return unreadable("not to be read (" + redact.Cut(why, maxWhy) + ")")
	}
	defer decoded.Close()
	readers, _ = readersOf(r.Header)
	return lookThrough(decoded, readers)
}

// onlyTelemetry tells whether all of these codings are such as databases for metrics and the like decode,
// and no server does that takes a method from a body: such a one reads it as it is.
func onlyTelemetry(coding string) bool {
	for one := range strings.SplitSeq(coding, ", ") {
		switch one {
		case "snappy", "x-snappy-framed", "lz4":
		default:
			return false
		}
	}
	return true
}

// beginsObject tells whether what is encoded by gzip begins like an object in JSON, or may.
func beginsObject(raw []byte) bool {
	decoded, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return true
	}
	begin := make([]byte, 512)
	n, err := io.ReadFull(decoded, begin)
	if err != nil {
		return true
	}
	text := bytes.TrimLeft(begin[:n], "\xef\xbb\xbf\xfe\xff\x00 \t\r\n")
	return len(text) == 0 || text[0] == '{'
}

// lookThrough reads all of a body by each of the readers.
func lookThrough(body io.Reader, readers []keyReader) *Refusal {
	limited := io.LimitReader(body, maxDecoded+1)
	read, err := io.Copy(io.Discard, &keyed{io.NopCloser(limited), readers})
	if refusal, ok := asRefusal(err); ok {
		return refusal
	}
	if err != nil || read > maxDecoded {
		return unreadable("not encoded as it says, or too long once it is decoded")
	}
	return nil
}
