package lockfile

// value is a value of a JSON, TOML or YAML document, with the line on which it
// begins. All three are read into it, so that each format is written once and
// every error has a line.
type value struct {
	line   int
	kind   valueKind
	text   string         // of a scalar, as written; of a string, unescaped
	keys   []string       // of a mapping, in the document's order
	values []*value       // of a mapping, in the order of keys; of a list
	index  map[string]int // of keys, once there are many
	from   origin
}

// origin is what made a TOML table, which decides what may add to it.
type origin byte

const (
	implied  origin = iota // by the path of a header below it
	byHeader               // [table] and [[list]]
	byDots                 // a.b = 1
	inline                 // {} and []
)

type valueKind byte

const (
	scalar valueKind = iota // a number, a boolean, null, a time
	textKind
	mapping
	list
)

// Limits of a document: how deep values lie in one another, and how many there
// are, each of which takes some hundred bytes. The largest real lockfiles have about two hundred thousand.
const (
	maxDepth  = 100
	maxValues = 400_000
)

// counted counts a value.
func (b *builder) counted(line int) error {
	if b.values++; b.values > maxValues {
		return b.wrongLine(line, "the file has more than %d values", maxValues)
	}
	return nil
}

// fewKeys is up to how many keys a mapping is searched without an index.
const fewKeys = 16

// getItem returns the value of a key, nil if there is none.
func (v *value) getItem(key string) *value {
	if v.index != nil {
		if i, ok := v.index[key]; ok {
			return v.values[i]
		}
		return nil
	}
	for i, k := range v.keys {
		if k == key {
			return v.values[i]
		}
	}
	return nil
}

// putItem appends a key that is not there yet.
func (v *value) putItem(key string, item *value) {
	v.keys, v.values = append(v.keys, key), append(v.values, item)
	switch {
	case v.index != nil:
		v.index[key] = len(v.keys) - 1
	case len(v.keys) > fewKeys:
		v.index = make(map[string]int, 2*len(v.keys))
		for i, k := range v.keys {
			v.index[k] = i
		}
	}
}

// isTrue tells whether a key's value is true.
func (v *value) isTrue(key string) bool {
	f := v.getItem(key)
	return f != nil && f.kind == scalar && f.text == "true"
}

// object requires a mapping.
func (b *builder) object(v *value, what string) error {
	if v.kind != mapping {
		return b.wrongLine(v.line, "%s must be a mapping of keys to values", what)
	}
	return nil
}

// childOf is the mapping or list at a key; nil if there is none.
func (b *builder) childOf(v *value, key string, want valueKind) (*value, error) {
	f := v.getItem(key)
	if f == nil || f.kind == want {
		return f, nil
	}
	word := "a list"
	if want == mapping {
		word = "a mapping of keys to values"
	}
	return nil, b.wrongLine(f.line, "%s must be %s", key, word)
}

// string is the string at a key; "" with line 0 if there is none.
func (b *builder) string(v *value, key string) (s string, line int, err error) {
	f := v.getItem(key)
	switch {
	case f == nil:
		return "", 0, nil
	case f.kind != textKind:
		return "", 0, b.wrongLine(f.line, "%s must be a string", key)
	}
	return f.text, f.line, nil
}

// scalar is the string or number at a key as written; "" if there is none.
func (b *builder) scalar(v *value, key string) (string, error) {
	f := v.getItem(key)
	switch {
	case f == nil:
		return "", nil
	case f.kind == mapping || f.kind == list:
		return "", b.wrongLine(f.line, "%s must be a string or a number", key)
	}
	return f.text, nil
}
