package workspace

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// notText begins a name in the list's file that is no UTF-8, which JSON can't hold: what follows is
// its bytes in base64. No path has a NUL of its own, so no name that is text begins so.
const notText = "\x00"

// keptName is a name as the list's file has it.
func keptName(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return notText + base64.StdEncoding.EncodeToString([]byte(name))
}

// nameOfKept is the name that was kept. Each has one form, so that no two entries of a list are of one name.
func nameOfKept(written string) (string, error) {
	coded, is := strings.CutPrefix(written, notText)
	if !is {
		return written, nil
	}
	name, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return "", fmt.Errorf("a name in it is neither text nor base64: %w", err)
	}
	if keptName(string(name)) != written {
		return "", fmt.Errorf("the name %q in it is not written as it is kept", name)
	}
	return string(name), nil
}

// renamed is a list whose names all went through change. Its map is l's own where none is another.
func (l *list) renamed(change func(string) (string, error)) (*list, error) {
	other, failed := *l, error(nil)
	each := func(name string) string {
		to, err := change(name)
		if err != nil {
			failed = err
		}
		return to
	}
	other.Original, other.Left, other.Deciding = each(l.Original), slices.Clone(l.Left), slices.Clone(l.Deciding)
	for _, names := range [][]string{other.Left, other.Deciding} {
		for i, name := range names {
			names[i] = each(name)
		}
	}
	cloned := false
	for name, entry := range l.Entries {
		to, target := each(name), each(entry.Target)
		if to == name && target == entry.Target {
			continue
		}
		if !cloned {
			other.Entries, cloned = maps.Clone(l.Entries), true
		}
		entry.Target = target
		delete(other.Entries, name)
		other.Entries[to] = entry
	}
	return &other, failed
}
