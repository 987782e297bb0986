package pages

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// keptFormat numbers what is kept of a page. It changes whenever the contract's
// index or any protocol's rows change their meaning, or what it lists of them, or what is masked in them:
// what was kept under another number is fetched again, and only its files' times
// are taken over.
const keptFormat = 5

// writeKept writes an index as it is kept: the index without its files as one
// JSON line, then each file as another, so that neither side needs all of the
// text in memory.
func writeKept(to io.Writer, ix *ecosystem.Index) error {
	head := *ix
	head.Files = nil
	lines := json.NewEncoder(to)
	if err := lines.Encode(keptHead{Index: head, Count: len(ix.Files)}); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the index can't be written")
	}
	for i := range ix.Files {
		if err := lines.Encode(&ix.Files[i]); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the index can't be written")
		}
	}
	return nil
}

type keptHead struct {
	ecosystem.Index
	Count int `json:"count"`
}

// readKept reads what writeKept wrote.
func readKept(from io.Reader) (*ecosystem.Index, error) {
	lines := json.NewDecoder(from)
	var head keptHead
	if err := lines.Decode(&head); err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the kept index can't be read")
	}
	if head.Count < 0 || head.Count > ecosystem.MaxFiles {
		return nil, fault.Invalid("the kept index has %d files", head.Count)
	}
	ix := &head.Index
	ix.Files = make([]ecosystem.File, head.Count)
	for i := range ix.Files {
		if err := lines.Decode(&ix.Files[i]); err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "the kept index can't be read")
		}
	}
	if _, err := lines.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.Invalid("the kept index goes on after its end")
	}
	compact(ix)
	return ix, nil
}

// compact makes an index small in memory: a file's path is the end of its URL,
// its name the end of its path, and its version is in its name, so they share
// bytes; words that many files have are one; and nothing holds on to the text
// that it was read from.
func compact(ix *ecosystem.Index) {
	words := map[string]string{}
	once := func(s string) string {
		if s == "" {
			return ""
		}
		if known, ok := words[s]; ok {
			return known
		}
		s = strings.Clone(s)
		words[s] = s
		return s
	}
	extents := 0
	for i := range ix.Files {
		extents += len(ix.Files[i].Rows)
	}
	rows := make([]ecosystem.Extent, 0, extents)
	ix.Files = slices.Clip(ix.Files)
	for i := range ix.Files {
		f := &ix.Files[i]
		f.URL = strings.Clone(f.URL)
		f.Shown = strings.Clone(f.Shown)
		f.Path = partOf(cmp.Or(f.Shown, f.URL), f.Path)
		f.Name = partOf(f.Path, f.Name)
		f.Version = partOf(f.Name, f.Version)
		f.Digest, f.Sidecar = strings.Clone(f.Digest), strings.Clone(f.Sidecar)
		f.Kind, f.Requires = policy.ArtifactKind(once(string(f.Kind))), once(f.Requires)
		begin := len(rows)
		rows = append(rows, f.Rows...)
		f.Rows = rows[begin:len(rows):len(rows)]
		if len(f.Rows) == 0 {
			f.Rows = nil
		}
	}
}

// partOf gives s as a part of whole if it is one.
func partOf(whole, s string) string {
	if at := strings.LastIndex(whole, s); at >= 0 {
		return whole[at : at+len(s)]
	}
	return strings.Clone(s)
}

// sizeOf is about what a compact index and the table of its paths take in
// memory.
func sizeOf(ix *ecosystem.Index) int64 {
	const (
		page   = 4 << 10 // a page and its maps
		place  = 64      // of a path in its table
		object = 16      // what the allocator adds to a text
	)
	file := int64(reflect.TypeFor[ecosystem.File]().Size())
	extent := int64(reflect.TypeFor[ecosystem.Extent]().Size())
	size := page + file*int64(cap(ix.Files)) + extent*int64(len(ix.Rows))
	text := func(whole, s string) {
		if s != "" && !strings.Contains(whole, s) {
			size += int64(len(s)) + object
		}
	}
	for i := range ix.Files {
		f := &ix.Files[i]
		size += place + extent*int64(len(f.Rows))
		text("", f.URL)
		text("", f.Shown)
		text("", f.Digest)
		text("", f.Sidecar)
		text(cmp.Or(f.Shown, f.URL), f.Path)
		text(f.Path, f.Name)
		text(f.Name, f.Version)
	}
	for _, l := range ix.LeftOut {
		size += 4*16 + int64(len(l.Name)+len(l.Version)+len(l.Path)+len(l.Reason)) + object
	}
	for tag, version := range ix.Tags {
		size += place + int64(len(tag)+len(version)) + 2*object
	}
	return size
}
