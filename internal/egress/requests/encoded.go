package requests

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/masking"
)

// Bounds of an encoded body in which keys are looked for, in bytes. A longer one is refused.
const (
	maxEncoded  = 4 << 20
	maxDecoded  = 64 << 20
	decoderCost = 128 << 10
)

// codingOf is how a body is encoded: "" not at all, or all codings that it names.
func codingOf(h http.Header) string {
	var all []string
	for _, field := range []string{"Content-Encoding", "Grpc-Encoding", "Connect-Content-Encoding"} {
		for _, value := range h.Values(field) {
			for one := range strings.SplitSeq(strings.ToLower(value), ",") {
				// Uploads to object stores have lengths between their pieces (aws-chunked). What takes
				// those out takes no method from a body; others read it as it is, as we do.
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
	most := int64(maxEncoded)
	if r.ContentLength >= 0 {
		most = min(most, r.ContentLength)
	}
	if err := TakePlace(r, c.config.Searches, 2*most+decoderCost); err != nil {
		return noPlace(err)
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxEncoded+1))
	if refusal, ok := asRefusal(err); ok {
		return refusal
	}
	if err != nil {
		return noEnd()
	}
	if len(raw) > maxEncoded {
		return unreadable("encoded and has more than 4 MiB")
	}
	defer Return(r, 2*most+decoderCost-int64(len(raw)))
	rest := r.Body // whose end has come, and who closes it
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(raw), rest), rest}
	if coding != "gzip" && coding != "x-gzip" { // what deflate is, servers do not agree about
		return unreadable("encoded in a way that is not read here (" + masking.Cut(coding, 40) + ")")
	}
	decoded, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return unreadable("not encoded as it says")
	}
	asIs := readersOf(r.Header)
	for _, one := range asIs {
		if keys, ok := one.(*jsonKeys); ok {
			keys.framed = true // what gzip makes has zero bytes in it
		}
	}
	if refusal := look(bytes.NewReader(raw), asIs); refusal != nil {
		return refusal
	}
	return look(decoded, readers)
}

// look reads all of a body by each of the readers.
func look(body io.Reader, readers []keyReader) *Refusal {
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
