package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Signatures and lengths of the records of a zip file.
const (
	endSignature       = "PK\x05\x06"
	locatorSignature   = "PK\x06\x07"
	end64Signature     = "PK\x06\x06"
	directorySignature = "PK\x01\x02"
	headerSignature    = "PK\x03\x04"
	descriptorSign     = "PK\x07\x08"

	endLength       = 22
	locatorLength   = 20
	end64Length     = 56
	directoryLength = 46
	headerLength    = 30

	maxComment = 1<<16 - 1
	most16     = 1<<16 - 1
	most32     = 1<<32 - 1
)

// zipEnd is what an archive's end says of its directory.
type zipEnd struct {
	entries   int64
	directory int64 // offset
	length    int64 // of the directory
}

// findEnd reads the end records and checks that there is one way to read them.
func findEnd(r io.ReaderAt, size int64) (zipEnd, error) {
	tail := make([]byte, min(size, endLength+maxComment))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return zipEnd{}, err
	}
	at, err := onlyEnd(tail)
	if err != nil {
		return zipEnd{}, err
	}
	rec := tail[at:]
	offset := size - int64(len(rec))
	if binary.LittleEndian.Uint32(rec[4:]) != 0 || !bytes.Equal(rec[8:10], rec[10:12]) {
		return zipEnd{}, fault.Invalid("the archive is a part of several")
	}
	end := zipEnd{
		entries:   int64(binary.LittleEndian.Uint16(rec[10:])),
		length:    int64(binary.LittleEndian.Uint32(rec[12:])),
		directory: int64(binary.LittleEndian.Uint32(rec[16:])),
	}
	end, before, err := readEnd64(r, end, offset)
	if err != nil {
		return zipEnd{}, err
	}
	if end.length > before || end.directory != before-end.length {
		return zipEnd{}, fault.Invalid("the archive's directory is not where its end says, or is followed by something else")
	}
	return end, nil
}

// onlyEnd finds the end record in the last bytes of a file: the one whose
// comment reaches to the last byte. Programs look for it in different ways, so
// there must be no other candidate behind it, nor another that fits as well.
func onlyEnd(tail []byte) (int, error) {
	found := -1
	for at := 0; ; at++ {
		i := bytes.Index(tail[at:], []byte(endSignature))
		if i < 0 {
			break
		}
		at += i
		fits := len(tail)-at >= endLength &&
			int(binary.LittleEndian.Uint16(tail[at+endLength-2:])) == len(tail)-at-endLength
		if found >= 0 {
			return 0, fault.Invalid("the archive has more than one end")
		}
		if fits {
			found = at
		}
	}
	if found < 0 {
		return 0, fault.Invalid("the file is not a zip archive, is cut, or has something after its end")
	}
	return found, nil
}

// readEnd64 reads the end record for large archives, if there is one; before is
// where the directory must end.
func readEnd64(r io.ReaderAt, end zipEnd, offset int64) (large zipEnd, before int64, err error) {
	needed := end.length == most32 || end.directory == most32
	locator := make([]byte, locatorLength)
	if offset >= locatorLength {
		if _, err := r.ReadAt(locator, offset-locatorLength); err != nil {
			return end, 0, err
		}
	}
	if string(locator[:4]) != locatorSignature {
		if needed {
			return end, 0, fault.Invalid("the archive's end refers to a second one, which is missing")
		}
		return end, offset, nil
	}
	before = offset - locatorLength - end64Length
	rec := make([]byte, end64Length)
	if before < 0 {
		return end, 0, fault.Invalid("the archive's two ends disagree")
	}
	if _, err := r.ReadAt(rec, before); err != nil {
		return end, 0, err
	}
	le := binary.LittleEndian
	whole := le.Uint32(locator[4:]) == 0 && le.Uint64(locator[8:]) == uint64(before) && le.Uint32(locator[16:]) <= 1 &&
		string(rec[:4]) == end64Signature && le.Uint64(rec[4:]) == end64Length-12 &&
		le.Uint64(rec[16:]) == 0 && le.Uint64(rec[24:]) == le.Uint64(rec[32:])
	entries, length, directory := le.Uint64(rec[32:]), le.Uint64(rec[40:]), le.Uint64(rec[48:])
	if !whole || !agreeSizes(end.entries, most16, entries) || !agreeSizes(end.length, most32, length) || !agreeSizes(end.directory, most32, directory) {
		return end, 0, fault.Invalid("the archive's two ends disagree")
	}
	return zipEnd{entries: int64(entries), length: int64(length), directory: int64(directory)}, before, nil
}

// agreeSizes reports whether a field and its large form say the same; the largest
// value of the field says nothing.
func agreeSizes(field, nothing int64, large uint64) bool {
	return large < 1<<62 && (field == nothing || uint64(field) == large)
}
