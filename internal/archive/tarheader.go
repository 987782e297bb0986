package archive

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

const blockSize = 512

// The type flags that are understood; any other is refused.
const (
	flagOldFile   = '\x00'
	flagFile      = '0'
	flagHardLink  = '1'
	flagSymlink   = '2'
	flagFolder    = '5'
	flagPax       = 'x' // extension of the next member
	flagPaxGlobal = 'g'
	flagLongName  = 'L' // GNU: the next member's path
	flagLongLink  = 'K' // GNU: the next member's link target
)

// header is one header block.
type header struct {
	flag byte
	path string
	link string
	mode int64
	size int64
}

func (h header) extends() bool {
	switch h.flag {
	case flagPax, flagPaxGlobal, flagLongName, flagLongLink:
		return true
	}
	return false
}

// Where the fields of a header block are. Times and owners are not read: they
// decide nothing.
const (
	nameEnd     = 100
	modeEnd     = 108
	sizeStart   = 124
	sizeEnd     = 136
	sumStart    = 148
	sumEnd      = 156
	flagAt      = 156
	linkStart   = 157
	linkEnd     = 257
	magicEnd    = 265
	prefixStart = 345
	prefixEnd   = 500
)

func parseHeader(b *[blockSize]byte) (header, error) {
	if sum, ok := octal(b[sumStart:sumEnd]); !ok || sum != checksum(b) {
		return header{}, fault.Invalid("the archive has a header with a wrong checksum")
	}
	h := header{flag: b[flagAt], path: text(b[:nameEnd]), link: text(b[linkStart:linkEnd])}
	var sizeOK, modeOK bool
	h.size, sizeOK = octal(b[sizeStart:sizeEnd])
	h.mode, modeOK = octal(b[nameEnd:modeEnd])
	if !sizeOK || !modeOK {
		return header{}, fault.Invalid("the archive has a header whose size or mode is no octal number")
	}
	prefix := b[prefixStart:prefixEnd]
	switch string(b[linkEnd:magicEnd]) {
	case "ustar\x0000":
		if p := text(prefix); p != "" {
			h.path = p + "/" + h.path
		}
	case "ustar  \x00":
		// The old GNU format has times and sparse maps here, which other readers
		// take for the beginning of the path.
		if len(bytes.Trim(prefix, "\x00")) != 0 {
			return header{}, fault.Invalid("the archive has a header with fields that only some programs know")
		}
	default:
		if len(bytes.Trim(b[linkEnd:], "\x00")) != 0 {
			return header{}, fault.Invalid("the archive has a header of an unknown format")
		}
	}
	return h, nil
}

// checksum sums a header's bytes with the checksum's own field as blanks.
func checksum(b *[blockSize]byte) int64 {
	var sum int64
	for i, c := range b {
		if sumStart <= i && i < sumEnd {
			c = ' '
		}
		sum += int64(c)
	}
	return sum
}

// text is what is before the first NUL.
func text(field []byte) string {
	before, _, _ := bytes.Cut(field, []byte{0})
	return string(before)
}

// octal reads a number as all programs do: digits, blanks before and blanks or
// NULs after. An empty field is zero. The binary form, which can be negative or
// huge, is refused.
func octal(field []byte) (int64, bool) {
	digits := strings.TrimLeft(strings.TrimRight(string(field), " \x00"), " ")
	if digits == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(digits, 8, 63)
	if err != nil || strings.ContainsAny(digits, "_+") {
		return 0, false
	}
	return int64(n), true
}

// padding is what fills the last block of n bytes.
func padding(n int64) int64 { return (blockSize - n%blockSize) % blockSize }
