package advisory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// tableBuilder collects what an import finds, in two blocks of bytes.
type tableBuilder struct {
	keys, values []byte
	found        []advisorySpan
	limit        int // bytes of the table; 0 is maxTable
}

// advisorySpan is one advisory about one package: where its key and value are.
type advisorySpan struct {
	key, value       uint32
	keyLen, valueLen uint32
	vulnerability    bool // else it is malware
}

// tally counts what a table holds.
type tally struct {
	advisories      int
	burnt           int                      // packages of which every version is malicious
	packages        map[pkgref.Ecosystem]int // of which malware is known
	vulnerabilities int
	vulnerable      map[pkgref.Ecosystem]int // packages
}

func (b *tableBuilder) addMalicious(m malicious) error {
	return b.append(m.pkg, false, func(values []byte) []byte { return appendMalware(values, m.malware) })
}

func (b *tableBuilder) addVulnerable(v vulnerable) error {
	return b.append(v.pkg, true, func(values []byte) []byte { return appendVulnerability(values, v.vulnerability) })
}

// append keeps one advisory about one package, which value appends.
func (b *tableBuilder) append(pkg pkgref.Ref, vulnerability bool, value func([]byte) []byte) error {
	key := tableKey(pkg)
	s := advisorySpan{key: uint32(len(b.keys)), keyLen: uint32(len(key)), value: uint32(len(b.values)), vulnerability: vulnerability}
	b.keys = append(b.keys, key...)
	b.values = value(b.values)
	s.valueLen = uint32(len(b.values)) - s.value
	b.found = append(b.found, s)
	limit := b.limit
	if limit == 0 {
		limit = maxTable
	}
	if len(b.keys)+len(b.values)+8*len(b.found) > limit {
		return fault.Invalid("what these records say takes more than %d MiB; import less", limit>>20)
	}
	return nil
}

func (b *tableBuilder) keyOfSpan(s advisorySpan) []byte { return b.keys[s.key : s.key+s.keyLen] }
func (b *tableBuilder) valueOf(s advisorySpan) []byte   { return b.values[s.value : s.value+s.valueLen] }

// encodeTable makes the table. Equal advisories about a package become one.
func (b *tableBuilder) encodeTable() ([]byte, tally) {
	slices.SortFunc(b.found, func(x, y advisorySpan) int {
		if c := bytes.Compare(b.keyOfSpan(x), b.keyOfSpan(y)); c != 0 {
			return c
		}
		return cmp.Or(boolInt(x.vulnerability)-boolInt(y.vulnerability), bytes.Compare(b.valueOf(x), b.valueOf(y)))
	})
	counted := tally{packages: map[pkgref.Ecosystem]int{}, vulnerable: map[pkgref.Ecosystem]int{}}
	var offsets []uint32
	var items []byte
	for i := 0; i < len(b.found); {
		end := i + 1
		for end < len(b.found) && bytes.Equal(b.keyOfSpan(b.found[i]), b.keyOfSpan(b.found[end])) {
			end++
		}
		offsets = append(offsets, uint32(len(items)))
		items = b.appendItem(items, b.found[i:end], &counted)
		i = end
	}
	out := make([]byte, 0, tableHeader+4*(len(offsets)+1)+len(items))
	out = append(out, tableMagic...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(offsets)))
	for _, o := range append(offsets, uint32(len(items))) {
		out = binary.LittleEndian.AppendUint32(out, o)
	}
	return append(out, items...), counted
}

// appendItem appends what was found about one package.
func (b *tableBuilder) appendItem(items []byte, found []advisorySpan, counted *tally) []byte {
	found = slices.CompactFunc(found, func(x, y advisorySpan) bool {
		return x.vulnerability == y.vulnerability && bytes.Equal(b.valueOf(x), b.valueOf(y))
	})
	key := b.keyOfSpan(found[0])
	items = appendText(items, string(key))
	bad := 0
	for bad < len(found) && !found[bad].vulnerability {
		bad++
	}
	items = binary.AppendUvarint(items, uint64(bad))
	burnt := false
	for _, s := range found[:bad] {
		items = append(items, b.valueOf(s)...)
		c := cursor{rest: b.valueOf(s)}
		burnt = c.malware().Every || burnt
	}
	items = binary.AppendUvarint(items, uint64(len(found)-bad))
	for _, s := range found[bad:] {
		items = append(items, b.valueOf(s)...)
	}
	counted.countAdvisories(ecosystemOfKey(key), bad, len(found)-bad)
	counted.burnt += boolInt(burnt)
	return items
}

// countAdvisories adds the advisories about one package.
func (t *tally) countAdvisories(of pkgref.Ecosystem, malware, vulnerabilities int) {
	t.advisories += malware
	t.vulnerabilities += vulnerabilities
	if malware > 0 {
		t.packages[of]++
	}
	if vulnerabilities > 0 {
		t.vulnerable[of]++
	}
}

func ecosystemOfKey(key []byte) pkgref.Ecosystem {
	for _, e := range pkgref.Ecosystems() {
		if tableKey(pkgref.Ref{Ecosystem: e})[0] == key[0] {
			return e
		}
	}
	return ""
}
