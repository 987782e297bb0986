package advisory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"sort"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// table is what one source says about malware and vulnerabilities, as one block of bytes that
// is searched as it stands: 200,000 packages are some 10 MB and no objects.
//
//	magic, count (uint32), count+1 offsets of items (uint32, from the first item), items
//	item:     key, number of advisories, advisories, number of vulnerabilities, vulnerabilities
//	key:      a letter for the ecosystem, then the canonical name
//	advisory: id, 1 if every version is meant else 0, versions, ranges
//	vulnerability: severity, aliases, and as of an advisory
//
// Tables of the first form, by their magic, have no vulnerabilities.
//
// A text is its length and its bytes, a list its length and its elements;
// lengths are varints.
type table struct {
	data  []byte
	count int
	first bool // it is of the first form
}

const (
	tableMagic  = "CFDMAL02"
	firstMagic  = "CFDMAL01"
	tableHeader = len(tableMagic) + 4
	maxTable    = 512 << 20
)

func errTable() error { return fault.New(fault.ErrUnavailable, "an advisory table is damaged") }

// openTable checks the outline; items are checked when they are read.
func openTable(data []byte) (*table, error) {
	if len(data) < tableHeader {
		return nil, errTable()
	}
	magic := string(data[:len(tableMagic)])
	if magic != tableMagic && magic != firstMagic {
		return nil, errTable()
	}
	t := &table{data: data, count: int(binary.LittleEndian.Uint32(data[len(tableMagic):])), first: magic == firstMagic}
	if t.itemsStart() > len(data) || t.itemsStart()+t.offset(t.count) != len(data) {
		return nil, errTable()
	}
	return t, nil
}

func (t *table) itemsStart() int { return tableHeader + 4*(t.count+1) }

func (t *table) offset(i int) int {
	return int(binary.LittleEndian.Uint32(t.data[tableHeader+4*i:]))
}

// itemAt is the i-th item's bytes; nil if the table is damaged.
func (t *table) itemAt(i int) []byte {
	from, to := t.itemsStart()+t.offset(i), t.itemsStart()+t.offset(i+1)
	if from > to || to > len(t.data) {
		return nil
	}
	return t.data[from:to]
}

// tableEntry is what a table has about a package.
type tableEntry struct {
	malware         []policy.Malware
	vulnerabilities []policy.Vulnerability
}

// findPackage returns what the table has about a package.
func (t *table) findPackage(pkg pkgref.Ref) (tableEntry, error) {
	c, known, err := t.seekPackage(pkg)
	if err != nil || !known {
		return tableEntry{}, err
	}
	found := tableEntry{malware: c.allMalware()}
	if !t.first {
		for range c.length() {
			found.vulnerabilities = append(found.vulnerabilities, c.vulnerability())
		}
	}
	if c.bad || len(c.rest) > 0 {
		return tableEntry{}, errTable()
	}
	return found, nil
}

// malwareOf is find for the malware alone: what is known of many vulnerabilities is not read
// for each question about the package.
func (t *table) malwareOf(pkg pkgref.Ref) ([]policy.Malware, error) {
	c, known, err := t.seekPackage(pkg)
	if err != nil || !known {
		return nil, err
	}
	all := c.allMalware()
	if c.bad {
		return nil, errTable()
	}
	return all, nil
}

// seekPackage finds a package's item; the cursor is behind its key.
func (t *table) seekPackage(pkg pkgref.Ref) (c cursor, known bool, err error) {
	key, damaged := tableKey(pkg), false
	i := sort.Search(t.count, func(i int) bool {
		c := cursor{rest: t.itemAt(i)}
		at := c.readText()
		damaged = damaged || c.bad
		return bytes.Compare(at, key) >= 0
	})
	switch {
	case damaged:
		return cursor{}, false, errTable()
	case i == t.count:
		return cursor{}, false, nil
	}
	c = cursor{rest: t.itemAt(i)}
	known = bytes.Equal(c.readText(), key)
	return c, known, nil
}

// tableKey sorts packages; the letters are part of the format.
func tableKey(pkg pkgref.Ref) []byte {
	letter := cmp.Or(pkg.Ecosystem.Traits().Table, '?')
	return append([]byte{letter}, pkg.Name...)
}

// cursor reads an item; bad stays set from the first thing that is not there.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) length() int {
	n, size := binary.Uvarint(c.rest)
	if size <= 0 || n > uint64(len(c.rest)) {
		c.bad, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[size:]
	return int(n)
}

func (c *cursor) readText() []byte {
	n := c.length()
	if n > len(c.rest) {
		c.bad, c.rest = true, nil
		return nil
	}
	s := c.rest[:n]
	c.rest = c.rest[n:]
	return s
}

func (c *cursor) allMalware() (all []policy.Malware) {
	for range c.length() {
		all = append(all, c.malware())
	}
	return all
}

func (c *cursor) malware() policy.Malware {
	m := policy.Malware{ID: string(c.readText()), Every: c.length() == 1}
	for range c.length() {
		m.Versions = append(m.Versions, string(c.readText()))
	}
	for range c.length() {
		m.Ranges = append(m.Ranges, policy.AffectedRange{
			Introduced: string(c.readText()), Fixed: string(c.readText()), LastAffected: string(c.readText()),
		})
	}
	return m
}

func (c *cursor) vulnerability() policy.Vulnerability {
	v := policy.Vulnerability{Severity: policy.Severity(c.length())}
	for range c.length() {
		v.Aliases = append(v.Aliases, string(c.readText()))
	}
	m := c.malware()
	v.ID, v.Every, v.Versions, v.Ranges = m.ID, m.Every, m.Versions, m.Ranges
	return v
}

func appendVulnerability(b []byte, v policy.Vulnerability) []byte {
	b = binary.AppendUvarint(b, uint64(v.Severity))
	b = binary.AppendUvarint(b, uint64(len(v.Aliases)))
	for _, id := range v.Aliases {
		b = appendText(b, id)
	}
	return appendMalware(b, policy.Malware{ID: v.ID, Every: v.Every, Versions: v.Versions, Ranges: v.Ranges})
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendMalware(b []byte, m policy.Malware) []byte {
	b = appendText(b, m.ID)
	b = binary.AppendUvarint(b, uint64(boolInt(m.Every)))
	b = binary.AppendUvarint(b, uint64(len(m.Versions)))
	for _, v := range m.Versions {
		b = appendText(b, v)
	}
	b = binary.AppendUvarint(b, uint64(len(m.Ranges)))
	for _, r := range m.Ranges {
		b = appendText(appendText(appendText(b, r.Introduced), r.Fixed), r.LastAffected)
	}
	return b
}
