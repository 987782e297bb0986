package archive

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TarGz is Tar for an archive that is compressed with gzip: one gzip member
// with nothing behind it.
func TarGz(r io.ReaderAt, size int64, limits Limits, visit func(m Member, content io.Reader) error) error {
	packed := bufio.NewReader(io.NewSectionReader(r, 0, size))
	z, err := gzip.NewReader(packed)
	if err != nil {
		return badGzip(err)
	}
	z.Multistream(false)
	limits = limits.filled()
	if err := Tar(&inflated{z: z, packed: size, limits: limits}, limits, visit); err != nil {
		return err
	}
	// Tar read to the end, and with it the checksum was checked.
	for {
		b, err := packed.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case b != 0 || !limits.Careless:
			return fault.Invalid("the compressed archive has something after its end")
		}
	}
}

// inflated is a gzip member that must not unpack to too much. Its own errors
// are the archive's fault.
type inflated struct {
	z        *gzip.Reader
	packed   int64
	unpacked int64
	limits   Limits
}

func (f *inflated) Read(p []byte) (int, error) {
	n, err := f.z.Read(p)
	f.unpacked += int64(n)
	if tooMuch := f.limits.checkSize(f.unpacked, f.packed); tooMuch != nil {
		return 0, tooMuch
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return n, badGzip(err)
	}
	return n, err
}

func badGzip(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Invalid("the archive is not one that gzip made, or is damaged")
	}
	return err
}
