package requestparts

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// letters reads a text that is written in other letters than UTF-8. changed tells that it means
// something else than it says.
type letters func(text []byte) (meant []byte, changed bool)

// lettersOf is what reads a charset; nil: it is read as it stands, as far as ASCII goes. Those
// that are not known can't be read here.
func lettersOf(charset string) (read letters, known bool) {
	switch charset {
	case "", "utf-8", "utf8", "unicode-1-1-utf-8", "us-ascii", "ascii", "l1", "binary", "_charset_":
		return nil, true
	case "utf-7", "utf7", "unicode-1-1-utf-7", "csutf7":
		return fromUTF7, true
	case "utf-16", "utf16", "utf-16le", "utf16le", "ucs-2", "iso-10646-ucs-2", "unicode", "csunicode":
		return fromUTF16(binary.LittleEndian), true
	case "utf-16be", "utf16be", "unicodefffe":
		return fromUTF16(binary.BigEndian), true
	case "utf-32", "utf32", "utf-32le", "utf32le", "ucs-4", "iso-10646-ucs-4", "utf-32be", "utf32be":
		return withoutZeros, true
	}
	return nil, oneByte.MatchString(charset)
}

// oneByte finds the charsets in which each byte is a letter, and those of ASCII are its own.
var oneByte = regexp.MustCompile(`^(iso[-_]?8859[-_]?\d{1,2}(-[ei])?|latin[-_]?\d{1,2}|(windows[-_]?|cp[-_]?)125\d|koi8[-_][ru])$`)

// HidesASCII tells whether a Content-Type names a charset in which a text of ASCII is other bytes than
// it is elsewhere, besides zero bytes, or one that nobody knows.
func HidesASCII(values []string) bool {
	return slices.ContainsFunc(charsetsOf(values), func(name string) bool {
		_, known := lettersOf(name)
		return !known && !manyBytes.MatchString(name) || strings.Contains(name, "utf-7") || strings.Contains(name, "utf7")
	})
}

// manyBytes finds other charsets in which ASCII is as it is, among letters of several bytes or of one.
var manyBytes = regexp.MustCompile(`^(shift[-_]?jis|sjis|x-sjis|ms_kanji|windows-31j|cp932|euc-?(jp|kr|tw|cn)|x-euc-jp|gb2312|gbk|gb18030|x-gbk|cp936|big5(-hkscs)?|cn-big5|ks_c_5601-1987|ksc_?5601|cp949|uhc|windows-(874|949)|tis-620|macintosh|mac|x-mac-[a-z]+|cp437|ibm437|cp85[0258]|ibm85[0258]|cp866|ibm866|utf8mb4)$`)

// lettersIn are what reads a text with these charsets. Without a charset that says so, a text is
// in UTF-16 or UTF-32 if it has zero bytes, and in UTF-7 if it has that form: some servers guess.
func lettersIn(charsets []string, text []byte) (all []letters) {
	if bytes.IndexByte(text, 0) >= 0 {
		all = append(all, withoutZeros, fromUTF16(binary.LittleEndian), fromUTF16(binary.BigEndian))
	} else if slices.ContainsFunc([]string{"\xff\xfe", "\xfe\xff"}, func(mark string) bool { return bytes.HasPrefix(text, []byte(mark)) }) {
		all = append(all, fromUTF16(binary.LittleEndian), fromUTF16(binary.BigEndian))
	}
	for _, name := range charsets {
		if read, _ := lettersOf(name); read != nil {
			all = append(all, read)
			if len(all) == 1 { // who names UTF-16 may mean either order
				all = append(all, fromUTF16(binary.BigEndian))
			}
		}
	}
	return append(all, fromUTF7)
}

// withoutZeros has the ASCII of UTF-16 and UTF-32, in whichever order.
func withoutZeros(text []byte) (meant []byte, changed bool) {
	meant = bytes.ReplaceAll(text, []byte{0}, nil)
	return meant, len(meant) != len(text)
}

// fromUTF16 reads pairs of bytes.
func fromUTF16(order binary.ByteOrder) letters {
	return func(text []byte) (meant []byte, changed bool) {
		meant = make([]byte, 0, len(text))
		for i := 0; i+1 < len(text); i += 2 {
			c := rune(order.Uint16(text[i:]))
			if utf16.IsSurrogate(c) {
				first := c
				c = utf8.RuneError
				if i+3 < len(text) {
					c = utf16.DecodeRune(first, rune(order.Uint16(text[i+2:])))
				}
				if c != utf8.RuneError { // both were read
					i += 2
				}
			}
			meant = utf8.AppendRune(meant, c)
		}
		return meant, len(text) > 1
	}
}

// shifted finds what is in base64 in UTF-7.
var shifted = regexp.MustCompile(`\+([A-Za-z0-9+/]*)-?`)

// fromUTF7 reads what is between a plus and a minus.
func fromUTF7(text []byte) (meant []byte, changed bool) {
	meant = shifted.ReplaceAllFunc(text, func(run []byte) []byte {
		inside := shifted.FindSubmatch(run)[1]
		if len(inside) == 0 {
			return []byte{'+'}
		}
		units, err := base64.RawStdEncoding.AppendDecode(nil, inside[:len(inside)-len(inside)%4+trimLetters(len(inside)%4)])
		if err != nil || len(units) < 2 {
			return run
		}
		out, _ := fromUTF16(binary.BigEndian)(units)
		return out
	})
	return meant, !bytes.Equal(meant, text)
}

// trimLetters is how many letters behind whole groups of base64 mean something.
func trimLetters(rest int) int {
	if rest == 1 {
		return 0
	}
	return rest
}
