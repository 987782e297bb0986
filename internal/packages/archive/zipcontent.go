package archive

import (
	"bufio"
	"compress/flate"
	"errors"
	"hash"
	"hash/crc32"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// inflater is a decompressor that one member after the other may use.
type inflater struct {
	packed *bufio.Reader
	flate  io.ReadCloser
}

func (f *inflater) resetReader(r io.Reader) io.Reader {
	if f.packed == nil {
		f.packed = bufio.NewReader(nil)
	}
	f.packed.Reset(r)
	if f.flate == nil {
		f.flate = flate.NewReader(f.packed)
		return f.flate
	}
	// flate's own readers can be reset, and that does not fail.
	if again, ok := f.flate.(flate.Resetter); !ok || again.Reset(f.packed, nil) != nil {
		f.flate = flate.NewReader(f.packed)
	}
	return f.flate
}

// openContent reads the member's content; a stored one needs no inflater.
func (m *zipMember) openContent(r io.ReaderAt, shared *inflater) io.Reader {
	section := io.NewSectionReader(r, m.data, m.packed)
	c := &zipContent{member: m, crc: crc32.NewIEEE()}
	if m.method == methodStored {
		c.r = section
		return c
	}
	c.r = shared.resetReader(section)
	c.rest = shared.packed
	return c
}

// zipContent is a member's content, checked at its end.
type zipContent struct {
	member *zipMember
	r      io.Reader
	rest   *bufio.Reader // packed bytes that the decompressor did not want; nil if stored
	crc    hash.Hash32
	read   int64
	err    error // sticky
}

func (c *zipContent) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	_, _ = c.crc.Write(p[:n]) // a hash takes everything
	c.read += int64(n)
	switch {
	case c.read > c.member.Size:
		err = fault.Invalid("a member of the archive is larger than the directory says")
	case errors.Is(err, io.EOF):
		err = c.checkEnd()
	case err != nil:
		err = badDeflate(err)
	}
	c.err = err
	return n, err
}

// checkEnd checks a member at its end; a member's last Read returns its error.
func (c *zipContent) checkEnd() error {
	if c.read != c.member.Size {
		return fault.Invalid("a member of the archive is smaller than the directory says")
	}
	if c.crc.Sum32() != c.member.crc {
		return fault.Invalid("a member of the archive does not have the checksum that the directory gives")
	}
	if c.rest == nil {
		return io.EOF
	}
	switch _, err := c.rest.ReadByte(); {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil:
		return err
	}
	return fault.Invalid("a member of the archive has something after its compressed data")
}

func badDeflate(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Invalid("a member of the archive is damaged")
	}
	return err
}
