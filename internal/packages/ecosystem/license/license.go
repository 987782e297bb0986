// Package license tells under which licence a release is: by all that says so in its ecosystem,
// in one form. Nothing is decided by it; a person reads it. Pure.
//
// Whatever contradicts is named with who says it, since one of them is wrong and which one is
// for a person to find out.
package license

import (
	"path"
	"slices"
	"strings"
)

// Claims are all that a release says of its licence. The zero value says nothing.
type Claims struct {
	// Expression is an SPDX expression, as metadata states it (License-Expression, npm's license).
	Expression string
	// Field is a text of any form: a name, or a whole licence.
	Field string
	// Classifiers are Python's, of which those that begin with "License ::" count.
	Classifiers []string
	// Files are those that have the licence's text, by IsFile.
	Files []Text
}

// Text is a file of a release.
type Text struct {
	Name string
	Text []byte
}

// Bounds of what is read: the longest usual licence has 35 kB.
const (
	MaxText        = 128 << 10 // bytes of a file that are looked at
	MaxFiles       = 4
	maxField       = 120 // bytes of a text that is told as it is
	maxExpression  = 300 // bytes of an expression; what is longer is a text of any form
	maxClassifiers = 20
)

// Collect keeps a file that IsFile tells of, if there is room; read gives at most so many bytes.
func (c *Claims) Collect(name string, read func(most int64) ([]byte, error)) error {
	if len(c.Files) == MaxFiles || !IsFile(name) {
		return nil
	}
	text, err := read(MaxText)
	if err != nil {
		return err
	}
	c.Files = append(c.Files, Text{name, text})
	return nil
}

// IsFile tells a file whose name says that it has a licence's text.
func IsFile(name string) bool {
	base := strings.ToLower(path.Base(name))
	stem, extension, _ := strings.Cut(base, ".")
	switch extension {
	case "", "txt", "md", "rst", "mit", "bsd", "apache":
	default:
		return false
	}
	for _, word := range []string{"license", "licence", "copying", "unlicense"} {
		if stem == word || strings.HasPrefix(stem, word+"-") || strings.HasPrefix(stem, word+"_") || strings.HasSuffix(stem, "-"+word) {
			return true
		}
	}
	return false
}

// said is what one place says.
type said struct {
	by   string
	text string   // as it is told
	ids  []string // the licences in it
}

// String is the licence in SPDX's names where they are known: "MIT"; "MIT by its metadata,
// GPL-3.0 by LICENSE", where they contradict, or where a file has another text than is known; ""
// where nothing says.
func (c Claims) String() string {
	all, unread := c.listSaid()
	switch {
	case len(all) == 0 && unread != "":
		return "not recognised: it is in " + unread
	case len(all) == 0:
		return ""
	case sourcesAgree(all) && unread == "":
		return mostExact(all)
	}
	var parts []string
	for _, s := range all {
		if part := s.text + " by " + s.by; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if unread != "" {
		parts = append(parts, "not recognised in "+unread)
	}
	return strings.Join(parts, ", ")
}

// listSaid lists the places that say something; unread is a file that says it in words that are not known.
func (c Claims) listSaid() (all []said, unread string) {
	add := func(by, text string, ids []string) {
		if len(ids) > 0 {
			all = append(all, said{by, text, ids})
		}
	}
	expression := strings.TrimSpace(c.Expression)
	file, isElsewhere := elsewhere(expression)
	switch {
	case expression == "":
	case len(expression) > maxExpression:
		text, ids := readField(expression)
		add("its metadata", text, ids)
	case !isElsewhere:
		add("its metadata", oneName(expression), namesInExpression(expression))
	}
	text, ids := readField(c.Field)
	add("its metadata", text, ids)
	if ids := classified(c.Classifiers); len(ids) > 0 {
		add("its classifiers", strings.Join(ids, " AND "), ids)
	}
	for _, f := range c.Files {
		ids := recognised(f.Text)
		if len(ids) == 0 && unread == "" {
			unread = f.Name
		}
		add(f.Name, strings.Join(ids, " AND "), ids)
	}
	if isElsewhere && unread == "" && !slices.ContainsFunc(all, func(s said) bool { return path.Base(s.by) == path.Base(file) }) {
		unread = file
	}
	return all, unread
}

// elsewhere is the file of npm's "SEE LICENSE IN FILE".
func elsewhere(expression string) (file string, is bool) {
	for _, words := range []string{"SEE LICENSE IN ", "SEE LICENCE IN "} {
		if len(expression) > len(words) && strings.EqualFold(expression[:len(words)], words) {
			return strings.TrimSpace(expression[len(words):]), true
		}
	}
	return "", false
}

// sourcesAgree tells that whatever a place names is named by the first, or is a closer word for it.
func sourcesAgree(all []said) bool {
	for _, s := range all[1:] {
		for _, id := range s.ids {
			if !slices.ContainsFunc(all[0].ids, func(first string) bool { return areKin(first, id) }) {
				return false
			}
		}
	}
	return true
}

// mostExact is the first that does not name a family alone.
func mostExact(all []said) string {
	for _, s := range all {
		if !slices.ContainsFunc(s.ids, isFamily) {
			return s.text
		}
	}
	return all[0].text
}

// isFamily tells a name that several licences have.
func isFamily(id string) bool {
	switch id {
	case "BSD", "GPL", "LGPL", "AGPL", "Apache", "MPL":
		return true
	}
	return false
}

// areKin tells two names of one licence, or a family and one of it.
func areKin(a, b string) bool {
	a, b = baseName(a), baseName(b)
	return a == b || strings.HasPrefix(b, a+"-") && family(a) || strings.HasPrefix(a, b+"-") && family(b)
}

func family(lower string) bool { return isFamily(strings.ToUpper(lower)) || lower == "apache" }

// baseName is a name without what it says of later versions.
func baseName(id string) string {
	id = strings.ToLower(id)
	for _, end := range []string{"-only", "-or-later", "+"} {
		id = strings.TrimSuffix(id, end)
	}
	if id == "python-2.0" {
		return "psf-2.0" // two names of what Python's foundation publishes under
	}
	return id
}

// namesInExpression are the licences of an expression.
func namesInExpression(expression string) []string {
	var ids []string
	exception := false
	for word := range strings.FieldsSeq(strings.NewReplacer("(", " ", ")", " ", "/", " OR ").Replace(expression)) {
		switch strings.ToUpper(word) {
		case "OR", "AND":
		case "WITH":
			exception = true
		default:
			if !exception {
				ids = append(ids, word)
			}
			exception = false
		}
	}
	if known := knownLicence(expression); known != "" { // "Apache 2.0" is no expression, and one name
		return []string{known}
	}
	return ids
}

// oneName is an expression, by SPDX's name if it is a usual one for a single licence.
func oneName(expression string) string {
	if name := knownLicence(expression); name != "" {
		return name
	}
	return strings.Join(strings.Fields(expression), " ")
}

// readField reads a text of any form.
func readField(text string) (told string, ids []string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "" || strings.EqualFold(text, "unknown") || strings.EqualFold(text, "none"):
		return "", nil
	case len(text) <= maxField && !strings.Contains(text, "\n"):
		told := oneName(text)
		if ids := namesInExpression(told); len(ids) == 1 || strings.Contains(told, " OR ") || strings.Contains(told, " AND ") {
			return told, ids
		}
		return told, []string{told}
	}
	if ids := recognised([]byte(text)); len(ids) > 0 {
		return strings.Join(ids, " AND "), ids
	}
	first, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(first) + " (and more, not recognised)", []string{first}
}
