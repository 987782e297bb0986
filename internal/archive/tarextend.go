package archive

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
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

func (e extension) any() bool { return e.pax != nil || e.gnu() }

func (e extension) gnu() bool { return e.longName != "" || e.longLink != "" }

// extend reads an extension header's data.
func (t *tarReader) extend(h header) error {
	if h.size > maxExtension {
		return fault.Invalid("the archive has an extension header of more than %d bytes", maxExtension)
	}
	t.unpacked += h.size
	data := make([]byte, h.size)
	if _, err := io.ReadFull(t.blocks, data); err != nil {
		return broken(err, "the archive was cut")
	}
	if err := t.skip(padding(h.size)); err != nil {
		return err
	}
	switch h.flag {
	case flagLongName:
		return t.pending.long(&t.pending.longName, data)
	case flagLongLink:
		return t.pending.long(&t.pending.longLink, data)
	}
	records, err := parsePax(data)
	if err != nil {
		return err
	}
	if h.flag == flagPaxGlobal {
		return checkGlobal(records)
	}
	if t.pending.any() {
		return fault.Invalid("the archive has two extension headers for one member")
	}
	t.pending.pax = records
	return nil
}

func (e *extension) long(field *string, data []byte) error {
	if *field != "" || e.pax != nil {
		return fault.Invalid("the archive has two extension headers for one member")
	}
	*field = strings.TrimRight(string(data), "\x00")
	if *field == "" || strings.Contains(*field, "\x00") {
		return fault.Invalid("the archive has an extension header with a broken path")
	}
	return nil
}

// parsePax reads records of the form "LENGTH KEY=VALUE\n".
func parsePax(data []byte) (map[string]string, error) {
	malformed := fault.Invalid("the archive has an extension header that is malformed")
	records := map[string]string{}
	for len(data) > 0 {
		before, _, ok := bytes.Cut(data, []byte{' '})
		length, err := strconv.ParseUint(string(before), 10, 31)
		if !ok || err != nil || length > uint64(len(data)) || int(length) < len(before)+2 {
			return nil, malformed
		}
		record := data[len(before)+1 : length]
		data = data[length:]
		key, value, ok := strings.Cut(strings.TrimSuffix(string(record), "\n"), "=")
		if !ok || key == "" || record[len(record)-1] != '\n' {
			return nil, malformed
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
		case value == "" || strings.Contains(value, "\x00"):
			return fault.Invalid("the archive has an extension header with a broken path or size")
		}
	}
	return nil
}

// checkGlobal permits a global header that only comments, such as git writes.
func checkGlobal(records map[string]string) error {
	for _, key := range []string{"path", "linkpath", "size", "hdrcharset"} {
		if _, ok := records[key]; ok {
			return fault.Invalid("the archive has a header that gives all members one path or size")
		}
	}
	return nil
}

// apply puts what the extension says into the header of member n.
func (e extension) apply(h header, n int) (header, error) {
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
