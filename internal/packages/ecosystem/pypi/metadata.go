package pypi

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxRequirements bounds the requirements of one release; the largest real
// ones have some two thousand, nearly all behind extras.
const maxRequirements = 10_000

// Describe reads the header of a METADATA file: Name, Version, Requires-Dist.
// A requirement that no client could read either is left out: it then admits
// nothing.
func (Protocol) Describe(metadata []byte) (ecosystem.Description, error) {
	h, err := readHeader(metadata)
	if err != nil {
		return ecosystem.Description{}, err
	}
	ref, err := pkgref.New(pkgref.Python, h.name, h.version)
	if err != nil || ref.Version == "" {
		return ecosystem.Description{}, fault.Invalid("the metadata's Name and Version are not a package and its version")
	}
	d := ecosystem.Description{Name: ref.Name, Version: ref.Version}
	if len(h.requires) > maxRequirements {
		return ecosystem.Description{}, fault.Invalid("the metadata has more than %d requirements", maxRequirements)
	}
	for _, text := range h.requires {
		if r, ok := parseRequirement(text); ok {
			d.Requirements = append(d.Requirements, r)
		}
	}
	narrowestFirst(d.Requirements)
	return d, nil
}

// Outline gives what a resolver needs of a METADATA file that can be described, and no
// other word of its publisher.
func (p Protocol) Outline(metadata []byte) ([]byte, error) {
	if _, err := p.Describe(metadata); err != nil {
		return nil, err
	}
	h, err := readHeader(metadata)
	if err != nil {
		return nil, err
	}
	out := []byte("Metadata-Version: 2.1\nName: " + h.name + "\nVersion: " + h.version + "\n")
	if _, ok := pkgref.ParseRange(pkgref.Python, h.python); ok && h.python != "" {
		out = append(out, "Requires-Python: "+h.python+"\n"...)
	}
	for _, extra := range h.extras {
		if pkgref.IsCanonicalName(pkgref.Python, strings.ToLower(extra)) {
			out = append(out, "Provides-Extra: "+extra+"\n"...)
		}
	}
	for _, text := range h.requires {
		if _, ok := parseRequirement(text); ok {
			out = append(out, "Requires-Dist: "+text+"\n"...)
		}
	}
	return out, nil
}

// readHeader reads the fields that matter, up to the body.
func readHeader(metadata []byte) (h header, err error) {
	for line := range bytes.Lines(metadata) {
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		if strings.ContainsAny(text, "\r\x00") { // which ends a line for some clients
			return h, fault.Invalid("the metadata has a carriage return or a NUL within a line")
		}
		if err := h.readLine(text); err != nil {
			return h, err
		}
		if h.ended {
			break
		}
	}
	return h, nil
}

// header collects the fields that matter, as Python's email parser would.
type header struct {
	name, version string
	python        string // Requires-Python
	extras        []string
	requires      []string
	last          *string // the field that a continuation line continues
	ended         bool
}

func (h *header) readLine(text string) error {
	if text[0] == ' ' || text[0] == '\t' {
		if h.last != nil {
			*h.last += " " + strings.TrimSpace(text)
		}
		return nil
	}
	key, value, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsAny(key, " \t") { // the body begins
		h.ended = true
		return nil
	}
	value = strings.TrimSpace(value)
	h.last = nil
	switch strings.ToLower(key) {
	case "name":
		return h.setOnce(&h.name, value)
	case "version":
		return h.setOnce(&h.version, value)
	case "requires-python":
		h.python = value
	case "provides-extra":
		h.extras = append(h.extras, value)
	case "requires-dist":
		if !utf8.ValidString(value) {
			return fault.Invalid("the metadata has a requirement that is not UTF-8")
		}
		h.requires = append(h.requires, value)
		h.last = &h.requires[len(h.requires)-1]
	}
	return nil
}

func (h *header) setOnce(field *string, value string) error {
	if *field != "" {
		return fault.Invalid("the metadata has two names or two versions")
	}
	*field = value
	h.last = field
	return nil
}
