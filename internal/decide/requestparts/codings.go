package requestparts

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	awsChunked = "aws-chunked"

	maxDecoded = 32 << 20 // bytes of a body once it is decoded
	maxWindow  = 8 << 20
	maxCodings = 4 // of one body
)

// DecoderCost is what decoding takes beside what is decoded, in bytes: windows of at most 8 MiB, and buffers.
const DecoderCost = 12 << 20

// codingsOf are the codings of a field's values, in lower case. identity is none.
func codingsOf(values []string) (all []string) {
	for _, value := range values {
		for one := range strings.SplitSeq(strings.ToLower(value), ",") {
			if one = strings.TrimSpace(one); one != "" && one != "identity" {
				all = append(all, one)
			}
		}
	}
	return all
}

// decodes tells whether a coding is read here.
func decodes(coding string) bool {
	return slices.Contains([]string{"gzip", "x-gzip", "deflate", "zstd"}, coding)
}

// errLong is that something is more than may be decoded.
var errLong = errors.New("it says more than 32 MiB once it is decoded")

// decodeBody takes the codings off, the last one first.
func decodeBody(codings []string, body []byte) ([]byte, error) {
	if len(codings) > maxCodings {
		return nil, errLong
	}
	for _, coding := range slices.Backward(codings) {
		var err error
		if body, err = decodeOne(coding, body); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// errAmbiguous is that two servers would decode two things.
var errAmbiguous = errors.New("it can be decoded in two ways")

// decodeOne takes one coding off.
func decodeOne(coding string, body []byte) ([]byte, error) {
	return decodeUpTo(coding, body, maxDecoded)
}

// decodeUpTo takes one coding off what is at most so many bytes then.
func decodeUpTo(coding string, body []byte, most int64) ([]byte, error) {
	if len(body) == 0 {
		return body, nil
	}
	from, err := openCoding(coding, body)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	out, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(out)) > most {
		err = errLong
	}
	return out, err
}

// openCoding reads a body without a coding. There are two things that are called deflate, of which a body
// is one: what could be both, servers read in two ways.
func openCoding(coding string, body []byte) (io.ReadCloser, error) {
	from, err := decoder(coding, bytes.NewReader(body))
	if coding != "deflate" {
		return from, err
	}
	bare := flate.NewReader(bytes.NewReader(body))
	if wrapped := err == nil; !wrapped {
		return bare, nil
	}
	if n, _ := bare.Read(make([]byte, 1)); n > 0 { // of all that is not made for that, nothing comes
		return nil, errAmbiguous
	}
	return from, nil
}

// Open reads a body without its codings. Nothing of the result is kept, so it may have any length; between two
// codings it has most bytes at most. why, if it is not "", is why that can't be done, as of Unread.
func (b Body) Open(body []byte, most int64) (from io.ReadCloser, why string) {
	if why := b.Unread(); why != "" {
		return nil, why
	}
	if pieces, ok := joinPieces(body); ok { // around what is encoded
		body = pieces
	}
	if len(body) == 0 || len(b.codings) == 0 {
		return io.NopCloser(bytes.NewReader(body)), ""
	}
	err := error(nil)
	if len(b.codings) > maxCodings {
		err = errLong
	}
	for i := len(b.codings) - 1; i > 0 && err == nil; i-- {
		body, err = decodeUpTo(b.codings[i], body, most)
	}
	if err == nil {
		from, err = openCoding(b.codings[0], body)
	}
	if err != nil {
		return nil, "it is not the " + strings.Join(b.codings, ", ") + " that it says, or too long"
	}
	return from, ""
}

func decoder(coding string, from io.Reader) (io.ReadCloser, error) {
	switch coding {
	case "deflate":
		return zlib.NewReader(from)
	case "zstd":
		d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return gzip.NewReader(from)
}

// unpieced decodes base64 in pieces, each with an end of its own.
func unpieced(body []byte) (out []byte, ok bool) {
	for _, piece := range strings.FieldsFunc(string(body), func(c rune) bool { return c == '=' || c == '\r' || c == '\n' || c == ' ' }) {
		text, ok := unbase64(piece)
		if !ok {
			return nil, false
		}
		out = append(out, text...)
	}
	return out, true
}

// joinPieces takes the lengths out of a body that is made of pieces: a length in hexadecimal, and perhaps
// a signature, before each. ok: all of it has that form; what is cut in the last one does not count.
func joinPieces(body []byte) (whole []byte, ok bool) {
	var c Chunks
	whole = c.Take(body, nil)
	return whole, !c.Broken() && c.pieces > 0
}

// Chunks takes the lengths out of a body in pieces while it passes.
type Chunks struct {
	head   []byte // of the piece that is read next
	left   int64  // bytes of a piece
	behind int    // bytes of the line's end behind a piece that are still to come
	pieces int    // that began
	ended  bool   // the last piece, of no bytes, has come
	broken bool
}

// maxChunkHead bounds a piece's head: a length, and a signature of at most a few hundred bytes.
const maxChunkHead = 1 << 10

// Broken tells that it was no body in pieces after all.
func (c *Chunks) Broken() bool { return c.broken }

// Take takes more of the body in, and gives what is in its pieces. each, if it is not nil, is
// called for each byte taken, with how many bytes of the result there are up to it.
func (c *Chunks) Take(more []byte, each func(n int)) (out []byte) {
	for _, b := range more {
		if c.broken && each == nil {
			return out
		}
		switch {
		case c.broken || c.ended:
		case c.left > 0:
			out = append(out, b)
			if c.left--; c.left == 0 {
				c.behind = 2
			}
		case c.behind > 0:
			c.lineEnd(b)
		default:
			c.headByte(b)
		}
		if each != nil {
			each(len(out))
		}
	}
	return out
}

// lineEnd takes the end of a line behind a piece: some have no carriage return.
func (c *Chunks) lineEnd(b byte) {
	switch {
	case b == '\n':
		c.behind = 0
	case b == '\r' && c.behind == 2:
		c.behind = 1
	default:
		c.broken = true
	}
}

// headByte takes a byte of a piece's head.
func (c *Chunks) headByte(b byte) {
	if b != '\n' {
		if c.head = append(c.head, b); len(c.head) > maxChunkHead {
			c.broken = true
		}
		return
	}
	length, _, _ := strings.Cut(strings.TrimRight(string(c.head), "\r"), ";")
	n, err := strconv.ParseInt(strings.TrimSpace(length), 16, 63)
	if err != nil || n < 0 {
		c.broken = true
		return
	}
	c.head, c.left, c.ended = c.head[:0], n, n == 0
	c.pieces++
}

// readsTransfer tells whether an encoding of parts is read here.
func readsTransfer(coding string) bool {
	return isAsWritten(coding) || coding == "base64" || coding == "quoted-printable"
}

// isAsWritten tells of an encoding of parts that it is none.
func isAsWritten(coding string) bool {
	return slices.Contains([]string{"", "7bit", "8bit", "binary"}, coding)
}

// untransfer takes an encoding of parts off. Bytes that are not of it stand for themselves, or are left out,
// as with servers that are not particular.
func untransfer(coding string, part []byte) (out []byte, changed bool) {
	switch coding {
	case "base64":
		letters := bytes.Map(func(c rune) rune {
			switch {
			case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '+', c == '/':
				return c
			case c == '-':
				return '+'
			case c == '_':
				return '/'
			}
			return -1
		}, part)
		out, err := base64.RawStdEncoding.AppendDecode(nil, letters[:len(letters)-len(letters)%4+trimLetters(len(letters)%4)])
		return out, err == nil && len(out) > 0
	case "quoted-printable":
		return unquote(part), true
	}
	return nil, false
}
