package dlp

import "sync"

// Set is rules that are looked for together. It never changes; any number of scanners use
// one.
type Set struct {
	rules  []Rule
	tables [4]func() *table // by the classes that are looked for, one bit each; made when needed
}

// table tells which rules may apply where a pair of bytes stands.
type table struct {
	// gate has the pairs with which a run begins; one bit each. Nearly all bytes get no
	// further.
	gate   [1 << 10]uint64
	opens  Alphabet // the first bytes of those pairs
	index  [1 << 16]uint16
	starts []start
}

// start is the rules that may apply at a pair of bytes.
type start struct {
	candidates []candidate
	after      *Alphabet // behind these bytes none of them does
}

// candidate is a rule that may apply where a pair of bytes stands.
type candidate struct {
	rule   int
	begins string // "": by Opens
}

// NewSet makes one. The first rule that finds a value at a place counts.
func NewSet(rules ...Rule) *Set {
	s := &Set{rules: rules}
	for classes := range s.tables {
		s.tables[classes] = sync.OnceValue(func() *table {
			t := &table{}
			for i, r := range rules {
				if classes>>r.Class&1 != 0 {
					t.addRule(i, r)
				}
			}
			return t
		})
	}
	return s
}

// tableFor is the one for a plan.
func (s *Set) tableFor(p Plan) *table {
	classes := 0
	if p.Secrets != Off {
		classes |= 1 << Secret
	}
	if p.Personal != Off {
		classes |= 1 << Personal
	}
	return s.tables[classes]()
}

func (t *table) addRule(i int, r Rule) {
	for _, b := range r.Begins {
		t.openPair(pairOf(b[0], b[1]), candidate{i, b}, r)
	}
	if r.Opens == nil {
		return
	}
	for first := range 256 {
		for second := range 256 {
			if r.Opens[first] && r.Alphabet[second] {
				t.openPair(pairOf(byte(first), byte(second)), candidate{i, ""}, r)
			}
		}
	}
}

func (t *table) openPair(p uint16, c candidate, r Rule) {
	if t.gate[p>>6]>>(p&63)&1 == 0 {
		t.gate[p>>6] |= 1 << (p & 63)
		t.opens[p>>8] = true
		t.index[p] = uint16(len(t.starts)) // #nosec G115 -- there are no more pairs than that
		t.starts = append(t.starts, start{after: r.After})
	}
	of := &t.starts[t.index[p]]
	of.candidates = append(of.candidates, c)
	of.after = intersect(of.after, r.After)
}

// intersect are the bytes that two alphabets have; nil has none.
func intersect(a, b *Alphabet) *Alphabet {
	if a == b || a == nil || b == nil {
		if a != b {
			return nil
		}
		return a
	}
	var common Alphabet
	for i := range common {
		common[i] = a[i] && b[i]
	}
	return &common
}

func pairOf(first, second byte) uint16 { return uint16(first)<<8 | uint16(second) }

// Rules are the names of the rules, in their order.
func (s *Set) Rules() []string {
	var names []string
	for _, r := range s.rules {
		names = append(names, r.Name)
	}
	return names
}

// Text is s as it may be kept where nobody should read a value: what is found in it is
// masked, by its plan's classes that are not Off.
func (s *Set) Text(text string, p Plan) (masked string, found []Finding) {
	if p.Off() || len(text) < 2 {
		return text, nil
	}
	if p.Secrets != Off {
		p.Secrets = Redact
	}
	if p.Personal != Off {
		p.Personal = Redact
	}
	scanner := s.Scanner(p)
	out, found := scanner.Write([]byte(text))
	masked = string(out)
	out, more := scanner.Close()
	if found = append(found, more...); len(found) == 0 {
		return text, nil
	}
	return masked + string(out), found
}
