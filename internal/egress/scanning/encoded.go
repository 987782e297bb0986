package scanning

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/cofferdam-dev/cofferdam/internal/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/masking"
)

// Bounds of encoded bodies that are looked into. What is longer is unseen.
const (
	maxEncoded = 4 << 20
	maxDecoded = 32 << 20
	// decoderCost is what decoding takes, in bytes: windows of at most 8 MiB, and buffers.
	decoderCost = 12 << 20
)

// codingOf is how a body is encoded: "" not at all. why is what keeps it from being read.
func codingOf(h http.Header) (coding, why string) {
	for _, field := range []string{"Grpc-Encoding", "Connect-Content-Encoding"} {
		for _, c := range h.Values(field) {
			if c != "" && !strings.EqualFold(strings.TrimSpace(c), "identity") {
				return "", "its messages are encoded (" + masking.Cut(c, 40) + ")"
			}
		}
	}
	var all []string
	for _, value := range h.Values("Content-Encoding") {
		for one := range strings.SplitSeq(strings.ToLower(value), ",") {
			if one = strings.TrimSpace(one); one != "" && one != "identity" && one != "aws-chunked" { // which has lengths between its pieces
				all = append(all, one)
			}
		}
	}
	switch {
	case len(all) == 0:
		return "", ""
	case len(all) > 1 || !slices.Contains([]string{"gzip", "x-gzip", "deflate", "zstd"}, all[0]):
		return "", "it is encoded (" + masking.Cut(strings.Join(all, ", "), 40) + ")"
	}
	return all[0], ""
}

// encoded looks into an encoded body, which is read whole for that, and is sent as it is: it
// can't be redacted, so what would be is blocked.
func (l *look) encoded(coding string) error {
	r := l.request
	most := int64(maxEncoded)
	if r.ContentLength >= 0 {
		most = min(most, r.ContentLength)
	}
	if err := requests.TakePlace(r, l.searches, 2*most+decoderCost); err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxEncoded+1))
	if err != nil {
		return err
	}
	rest := r.Body
	r.Body, r.GetBody = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(raw), rest), rest}, nil
	defer requests.Return(r, 2*most+decoderCost-min(int64(len(raw)), 2*most+decoderCost))
	if len(raw) > maxEncoded {
		return l.unseen("it is encoded and has more than " + sizeText(maxEncoded))
	}
	if err := l.fields("trailer ", r.Trailer); err != nil {
		return err
	}
	if len(raw) == 0 {
		return nil
	}
	plain, err := decoder(coding, raw)
	if err != nil {
		return l.unseen("it is not the " + coding + " that it says")
	}
	defer plain.Close()
	return l.decoded(coding, plain)
}

// decoded looks through what an encoded body says.
func (l *look) decoded(coding string, plain io.Reader) error {
	scanner := l.set().Scanner(unredacted(l.plan), l.known...)
	buf := make([]byte, pieceSize)
	for left := maxDecoded; ; {
		n, err := plain.Read(buf)
		_, found := scanner.Write(buf[:n])
		if err != nil {
			_, more := scanner.Close()
			found = append(found, more...)
		}
		if refused := l.tell("body", found); refused != nil {
			return refused
		}
		left -= n
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return l.unseen("it is not the " + coding + " that it says")
		case left <= 0:
			return l.unseen("it says more than " + sizeText(maxDecoded) + " once it is decoded")
		}
	}
}

// decoder reads what an encoded body says.
func decoder(coding string, raw []byte) (io.ReadCloser, error) {
	from := bytes.NewReader(raw)
	switch coding {
	case "deflate":
		return zlib.NewReader(from)
	case "zstd":
		d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return gzip.NewReader(from)
}

func sizeText(n int) string { return strconv.Itoa(n>>20) + " MiB" }
