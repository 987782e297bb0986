package archive

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxExtension bounds one extension header; real ones have some hundred bytes.
const maxExtension = 1 << 20

// extension is what the headers before a member say of it. Each kind may come
// once, and the two formats do not mix: programs differ in which one wins.
type extension struct {
	pax      map[string]string
	longName string
	longLink string
}

func (e extension) isSet() bool { return e.pax != nil || e.isGNU() }

func (e extension) isGNU() bool { return e.longName != "" || e.longLink != "" }

// extend reads an extension header's data.
func (t *tarReader) extend(h header) error {
	if !isPlainName(h.path) {
		return fault.Invalid("the archive has an extension header whose own name is no plain text")
	}
	// Some readers apply what is pending to the header that comes next, whatever
	// it is, and some apply what is global to all that they have read.
	if h.flag == flagPaxGlobal && (t.members > 0 || t.global || t.pending.isSet()) {
		return fault.Invalid("the archive has a global header that is not at its beginning")
	}
	if h.size > maxExtension {
		return fault.Invalid("the archive has an extension header of more than %d bytes", maxExtension)
	}
	t.unpacked += h.size
	data := make([]byte, h.size)
	if _, err := io.ReadFull(t.blocks, data); err != nil {
		return broken(err, "the archive was cut")
	}
	if err := t.skipBytes(padding(h.size)); err != nil {
		return err
	}
	switch h.flag {
	case flagLongName:
		return t.pending.setLong(&t.pending.longName, data)
	case flagLongLink:
		return t.pending.setLong(&t.pending.longLink, data)
	}
	records, err := parsePax(data)
	if err != nil {
		return err
	}
	if h.flag == flagPaxGlobal {
		t.global = true
		return checkGlobal(records)
	}
	if t.pending.isSet() {
		return fault.Invalid("the archive has two extension headers for one member")
	}
	t.pending.pax = records
	return nil
}

func (e *extension) setLong(field *string, data []byte) error {
	if *field != "" || e.pax != nil {
		return fault.Invalid("the archive has two extension headers for one member")
	}
	*field = strings.TrimRight(string(data), "\x00")
	if *field == "" || strings.Contains(*field, "\x00") {
		return fault.Invalid("the archive has an extension header with a broken path")
	}
	return nil
}

// isPlainName tells whether an extension header's own name is text: the first bytes of
// an archive must not look like those of a compressed file, which some readers
// would unpack once more. Packers cut such names, also within a character.
func isPlainName(name string) bool {
	for i := range len(name) {
		if name[i] < ' ' || name[i] == 0x7f || (i < 2 && name[i] >= utf8.RuneSelf) {
			return false
		}
	}
	return true
}

// parsePax reads records of the form "LENGTH KEY=VALUE\n". Some readers take the
// length for it and some the line feed; some go by the number of characters that
// they made of the bytes, and some by how the number is written.
func parsePax(data []byte) (map[string]string, error) {
	malformed := fault.Invalid("the archive has an extension header that is malformed")
	records := map[string]string{}
	for len(data) > 0 {
		before, _, ok := bytes.Cut(data, []byte{' '})
		length, err := strconv.ParseUint(string(before), 10, 31)
		if !ok || err != nil || before[0] == '0' || length > uint64(len(data)) || int(length) < len(before)+2 {
			return nil, malformed
		}
		record := data[len(before)+1 : length]
		data = data[length:]
		line, ended := strings.CutSuffix(string(record), "\n")
		key, value, ok := strings.Cut(line, "=")
		if !ok || key == "" || !ended {
			return nil, malformed
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(line, breaks) || strings.ContainsRune(key, ' ') {
			return nil, fault.Invalid("the archive has an extension header with a control character, or something that is no text")
		}
		if _, twice := records[key]; twice {
			return nil, fault.Invalid("the archive has an extension header that says one thing twice")
		}
		records[key] = value
	}
	if err := checkPax(records); err != nil {
		return nil, err
	}
	return records, nil
}

func checkPax(records map[string]string) error {
	for key, value := range records {
		switch {
		case strings.HasPrefix(key, "GNU.sparse.") || key == "SCHILY.realsize":
			return fault.Invalid("the archive has a sparse file")
		case key == "hdrcharset" && value != "ISO-IR 10646 2000 UTF-8":
			return fault.Invalid("the archive has paths in another encoding than UTF-8")
		case key != "path" && key != "linkpath" && key != "size":
		case value == "":
			return fault.Invalid("the archive has an extension header with a broken path or size")
		}
	}
	return nil
}

// checkGlobal permits a global header that only comments, such as git writes:
// readers differ in what else they take from one, and for how long.
func checkGlobal(records map[string]string) error {
	for key := range records {
		if key != "comment" {
			return fault.Invalid("the archive has a header that gives all members one path, size or owner")
		}
	}
	return nil
}

// applyTo puts what the extension says into the header of member n.
func (e extension) applyTo(h header, n int) (header, error) {
	if (e.pax["linkpath"] != "" || e.longLink != "") && !h.isLink() {
		return h, fault.Invalid("the archive's member %d has a link's target and is no link", n)
	}
	if path := e.pax["path"]; path != "" {
		h.path = path
	}
	if link := e.pax["linkpath"]; link != "" {
		h.link = link
	}
	if size := e.pax["size"]; size != "" && size != strconv.FormatInt(h.size, 10) {
		return h, fault.Invalid("two headers give the archive's member %d different sizes", n)
	}
	if e.longName != "" {
		h.path = e.longName
	}
	if e.longLink != "" {
		h.link = e.longLink
	}
	return h, nil
}
