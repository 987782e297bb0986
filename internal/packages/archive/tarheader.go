package archive

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
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
	flag  byte
	path  string
	link  string
	magic magic
	mode  int64
	size  int64
}

// magic is the format that a header block says it has.
type magic byte

const (
	magicNone magic = iota // older than the formats with a name
	magicUstar
	magicGNU
)

func (h header) extends() bool {
	switch h.flag {
	case flagPax, flagPaxGlobal, flagLongName, flagLongLink:
		return true
	}
	return false
}

func (h header) isLink() bool { return h.flag == flagHardLink || h.flag == flagSymlink }

// Where the fields of a header block are.
const (
	nameEnd     = 100
	modeEnd     = 108
	userEnd     = 116
	groupEnd    = 124
	sizeEnd     = 136
	timeEnd     = 148
	sumEnd      = 156
	flagAt      = 156
	linkStart   = 157
	linkEnd     = 257
	magicStop   = 265
	ownerEnd    = 297
	teamEnd     = 329
	majorEnd    = 337
	minorEnd    = 345
	prefixStart = 345
	shortPrefix = 475 // where the prefix ends for packers that write two more times
	accessEnd   = 488
	prefixEnd   = 500
)

// parseHeader reads a header block. Every field is checked, also those that
// decide nothing here: there are readers that pass over a header whose owner or
// link they can't read, and then take the file's content for headers.
func parseHeader(b *[blockSize]byte) (header, error) {
	if sum, ok := parseOctal(b[timeEnd:sumEnd]); !ok || sum != checksum(b) {
		return header{}, fault.Invalid("the archive has a header with a wrong checksum")
	}
	if !wholeTexts(b) {
		return header{}, fault.Invalid("the archive has a header with something behind the end of a path or a name")
	}
	if !wholeNumbers(b) {
		return header{}, fault.Invalid("the archive has a header with an owner, a time or a device that is no number")
	}
	h := header{flag: b[flagAt], path: textBeforeNUL(b[:nameEnd]), link: textBeforeNUL(b[linkStart:linkEnd])}
	var sizeOK, modeOK bool
	h.size, sizeOK = parseOctal(b[groupEnd:sizeEnd])
	h.mode, modeOK = parseOctal(b[nameEnd:modeEnd])
	if !sizeOK || !modeOK {
		return header{}, fault.Invalid("the archive has a header whose size or mode is no octal number")
	}
	if h.path == "" {
		return header{}, fault.Invalid("the archive has a header without a path")
	}
	if (h.link != "") != h.isLink() {
		return header{}, fault.Invalid("the archive has a header with a link's target that is no link, or a link without one")
	}
	return h, h.format(b)
}

// format reads what the header's format adds.
func (h *header) format(b *[blockSize]byte) error {
	prefix := b[prefixStart:prefixEnd]
	switch string(b[linkEnd:magicStop]) {
	case "ustar\x0000":
		h.magic = magicUstar
		if p := textBeforeNUL(prefix); p != "" {
			h.path = p + "/" + h.path
		}
		if !isBlank(b[prefixEnd:]) {
			return fault.Invalid("the archive has a header with fields that only some programs know")
		}
	case "ustar  \x00":
		h.magic = magicGNU
		// The old GNU format has times and sparse maps here, which other readers
		// take for the beginning of the path.
		if !isBlank(b[prefixStart:]) {
			return fault.Invalid("the archive has a header with fields that only some programs know")
		}
	default:
		if !isBlank(b[linkEnd:]) {
			return fault.Invalid("the archive has a header of an unknown format")
		}
		if h.extends() {
			return fault.Invalid("the archive has an extension header in a format that has none")
		}
	}
	return nil
}

// wholeTexts tells whether a header's texts are NULs from their first NUL on:
// some readers cut them there, and some only up to the next line feed.
func wholeTexts(b *[blockSize]byte) bool {
	fields := [][]byte{b[:nameEnd], b[linkStart:linkEnd], b[magicStop:ownerEnd], b[ownerEnd:teamEnd], b[prefixStart:prefixEnd]}
	if moreTimes(b) {
		fields[len(fields)-1] = b[prefixStart:shortPrefix]
	}
	for _, field := range fields {
		if _, behind, _ := bytes.Cut(field, []byte{0}); !isBlank(behind) {
			return false
		}
	}
	return true
}

// moreTimes tells whether two times follow a prefix of at most 130 bytes: npm's
// packer writes them, and reads them wherever the prefix is that short.
func moreTimes(b *[blockSize]byte) bool {
	_, access := parseOctal(b[shortPrefix+1 : accessEnd])
	_, change := parseOctal(b[accessEnd:prefixEnd])
	return b[shortPrefix] == 0 && access && change
}

// wholeNumbers checks the numbers that decide nothing here.
func wholeNumbers(b *[blockSize]byte) bool {
	fields := [][]byte{b[modeEnd:userEnd], b[userEnd:groupEnd], b[sizeEnd:timeEnd], b[teamEnd:majorEnd], b[majorEnd:minorEnd]}
	for _, field := range fields {
		if _, ok := parseOctal(field); !ok && !wideNumber(field) {
			return false
		}
	}
	return true
}

// isBlank tells whether b is all NULs.
func isBlank(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// checksum sums a header's bytes with the checksum's own field as blanks.
func checksum(b *[blockSize]byte) int64 {
	var sum int64
	for i, c := range b {
		if timeEnd <= i && i < sumEnd {
			c = ' '
		}
		sum += int64(c)
	}
	return sum
}

// textBeforeNUL is what is before the first NUL.
func textBeforeNUL(field []byte) string {
	before, _, _ := bytes.Cut(field, []byte{0})
	return string(before)
}

// parseOctal reads a number as all programs do: digits, blanks before, and a blank
// or a NUL at the end, which some readers need to see that it is one. An empty
// field is zero. The binary form, which can be negative or huge, is refused.
func parseOctal(field []byte) (int64, bool) {
	digits := strings.TrimLeft(strings.TrimRight(string(field), " \x00"), " ")
	if digits == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(digits, 8, 63)
	if err != nil || strings.HasSuffix(string(field), digits) {
		return 0, false
	}
	return int64(n), true
}

// wideNumber tells whether a field is a number in the binary form that all programs
// can hold: positive and of at most 53 bits.
func wideNumber(field []byte) bool {
	low := field[len(field)-7:]
	return field[0] == 0x80 && isBlank(field[1:len(field)-len(low)]) && low[0] < 1<<5
}

// padding is what fills the last block of n bytes.
func padding(n int64) int64 { return (blockSize - n%blockSize) % blockSize }
