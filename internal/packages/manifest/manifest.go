// Package manifest is the contract of those who read what a project says that it requires: the files that people write,
// as against lockfiles, which their clients write.
//
// A manifest asks for packages from a registry, by their names: its roots. If it asks for something
// in another way (a directory, a repository, an address, another registry), that is left out, with
// the line and the reason. No root has the name of something that was left out or that the project
// itself has: whoever registers that name publicly would be asked for it. Where a manifest says
// something by which any name may be such a one (another registry, a member that can't be read),
// all names are withheld: none is a root, and each is told with its line.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Files are a project's, by their names in it, with slashes. "." is the project itself.
type Files interface {
	// Read gives what is in a file, as it is; nil without an error where there is none. It is a *BehindLinkError where a link
	// is on the way that is not followed.
	Read(name string) ([]byte, error)
	// Folders are the names of the directories in one, and of the links to directories, also of those that are not followed.
	// None where there is no such directory; a *BehindLinkError as of Read.
	Folders(name string) (dirs, links []string, err error)
}

// Format reads the manifests of one name.
type Format struct {
	Name string // the file's, without a directory
	// Read notes what a manifest asks for, and reads what it includes by w. An error is a sentence's part: "line 3 ...".
	Read func(w *Wants, m Text) error
}

// Text is a manifest.
type Text struct {
	File string // its name in the project, with slashes
	Data []byte // UTF-8, without a byte order mark

	sought *int // bytes that were looked at for lines, of all texts; nil: not counted
}

// LineOf is the number of the line with the first of some words that follow each other in the text, 0 if they are not there, or
// if a project's texts were looked at too often: a line is a help for readers, and each takes a look at the whole text. A part of a
// longer word is none. A text that has a word with escapes is found by it, too.
func (t Text) LineOf(words ...string) int {
	line := t.lineOf(words)
	if line > 0 || t.sought != nil && *t.sought > maxSought || !bytes.ContainsRune(t.Data, '\\') {
		return line
	}
	if t.sought != nil {
		*t.sought += 20 * len(t.Data) // as many looks as it takes
	}
	return Text{Data: withoutEscapes(t.Data), sought: t.sought}.lineOf(words)
}

func (t Text) lineOf(words []string) int {
	if t.sought != nil {
		if *t.sought += len(t.Data); *t.sought > maxSought {
			return 0
		}
	}
	at, begin := 0, 0
	for _, word := range words {
		if begin = t.findWord(word, at); begin < 0 {
			return 0
		}
		at = begin + len(word)
	}
	return 1 + bytes.Count(t.Data[:begin], []byte("\n"))
}

// findWord finds where a word begins, from a place on; -1: nowhere.
func (t Text) findWord(word string, from int) int {
	if word == "" {
		return from
	}
	for {
		next := bytes.Index(t.Data[from:], []byte(word))
		if next < 0 {
			return -1
		}
		begin, end := from+next, from+next+len(word)
		joined := begin > 0 && isWord(word[0]) && isWord(t.Data[begin-1]) && !bytes.HasSuffix(t.Data[:begin], []byte(byteOrderMark)) || end < len(t.Data) && isWord(word[len(word)-1]) && isWord(t.Data[end])
		if !joined {
			return begin
		}
		from = begin + 1
		for isWord(word[0]) && from < len(t.Data) && isWord(t.Data[from]) { // nor does it begin in the rest of this one
			from++
		}
	}
}

// Root is a package that a project asks for.
type Root struct {
	Name string // as it is written, with extras where there are such
	File string
	Line int // 0: not known
	// Range is the one range of versions that all of the project's manifests name it with, as it
	// is written; "": one names it without, or under a condition, or they name several.
	Range string
	// Named are ranges that the project's manifests name it with, each once, as they are written: also those that hold under a
	// condition, or for a part of the project. A few; none of a manifest that can't tell.
	Named []string
}

// LeftOut is something that a manifest asks for and that is no root.
type LeftOut struct {
	File string
	Line int    // 0: the whole file
	Text string // as it is written; may be anything
	Why  string // a sentence's part: "it is a directory"
}

func (l LeftOut) String() string {
	if l.Text == "" {
		return l.placeText() + ": " + l.Why
	}
	return fmt.Sprintf("%s: %s: %s", l.placeText(), l.Text, l.Why)
}

// placeText is the file, with the line if that is known.
func (l LeftOut) placeText() string {
	if l.Line > 0 {
		return fmt.Sprintf("%s:%d", l.File, l.Line)
	}
	return l.File
}

// Bounds of a project's manifests.
const (
	maxFiles   = 2_000
	maxMissing = mostFolders      // files that others name, and that are not there
	maxLooks   = 10 * mostFolders // for files that may not be there, of which each directory may have several
	maxRoots   = 50_000
	maxLeftOut = 10_000
	maxOwn     = 200_000 // names that are kept
	maxRefers  = 200_000 // of members to catalogs
	maxSought  = 1 << 30 // bytes
)

// Wants are what the manifests of one ecosystem ask for. Not safe for concurrent use.
type Wants struct {
	files Files
	fold  func(name string) (string, bool) // to the name that a registry has, without extras; false: it is none

	roots    []Root
	asked    map[string]bool     // the roots' names
	ranges   map[string]string   // folded: what Root.Range is
	named    map[string][]string // folded: what Root.Named is
	leftOut  []LeftOut
	outside  []Outside
	told     map[LeftOut]bool // what is in leftOut
	read     []string
	sought   int
	looks    int
	own      map[string]string // folded: why names are not to be asked for from a registry
	ownAll   []string          // beginnings of such names, in small letters
	doubt    string            // where the first thing is for which all names are withheld; "": nowhere
	public   bool
	asks     Asked
	included map[string]bool
	missing  map[string]bool // files that others name, and that are not there
	there    map[string]bool // what HasAny has found
	has      map[string]bool // what Has found
	refers   []referred
	unless   []conditional
	defined  map[string]bool
	builds   map[string]Place // folded: where it is said that a package may run something when it is installed

	elsewhereSeen bool // Elsewhere was told something
}

// NewWants is for the files of a project. fold gives the name of a package as its registry has it, without extras, and false
// for what is none.
func NewWants(files Files, fold func(name string) (string, bool)) *Wants {
	return &Wants{files: files, fold: fold, asked: map[string]bool{}, ranges: map[string]string{}, named: map[string][]string{}, told: map[LeftOut]bool{}, own: map[string]string{}, included: map[string]bool{}, missing: map[string]bool{}, there: map[string]bool{}, has: map[string]bool{}, defined: map[string]bool{}, builds: map[string]Place{}}
}

// Include reads a file by a format, once. found is false where there is none; of one behind a link that is not followed nothing is read.
func (w *Wants) Include(f Format, file string) (found bool, err error) {
	if w.included[f.Name+"\x00"+file] {
		return true, nil
	}
	if len(w.included) == maxFiles {
		return false, fmt.Errorf("the project has more than %d manifests", maxFiles)
	}
	if w.missing[file] {
		return false, nil
	}
	data, behind, err := w.fetch(file)
	if err == nil && behind {
		return true, nil
	}
	if err == nil && data == nil {
		if w.missing[file] = true; len(w.missing) > maxMissing {
			err = fmt.Errorf("the project names more than %d files that are not there", maxMissing)
		}
	}
	if err != nil || data == nil {
		return false, err
	}
	w.included[f.Name+"\x00"+file] = true
	text, err := Decode(data)
	if err == nil {
		err = f.Read(w, Text{File: file, Data: text, sought: &w.sought})
	}
	if err != nil {
		return true, fmt.Errorf("%s can't be read: %w", file, err)
	}
	if !slices.Contains(w.read, file) {
		w.read = append(w.read, file)
	}
	return true, nil
}

// Has tells whether the project has a file that can be read.
func (w *Wants) Has(file string) bool {
	is, looked := w.has[file]
	if !looked { // as often as a manifest names it
		data, _, err := w.fetch(file)
		is = err == nil && data != nil
		w.has[file] = is
	}
	return is
}

// HasAny tells whether the project has one of some files, for each of which it is looked once. One that can't be read is there, and so is
// one behind a link.
func (w *Wants) HasAny(files ...string) bool {
	return slices.ContainsFunc(files, func(file string) bool {
		is, known := w.there[file]
		if !known {
			data, behind, err := w.look(file)
			is = err != nil || behind || data != nil
			w.there[file] = is
		}
		return is
	})
}

// Add notes a root that may have any version.
func (w *Wants) Add(name, file string, line int) { w.AddRange(name, "", file, line) }

// AddRange notes a root that may have the versions of a range, whatever else is installed.
func (w *Wants) AddRange(name, among, file string, line int) {
	folded, ok := w.fold(name)
	if !ok {
		w.LeaveOut(file, line, name, "it is no name of a package")
		return
	}
	if before, is := w.ranges[folded]; len(w.ranges) <= maxRoots && (!is || before != among) {
		if is {
			among = ""
		}
		w.ranges[folded] = among
	}
	if w.asked[name] || len(w.roots) > maxRoots { // Roots says that there are too many
		return
	}
	w.asked[name] = true
	w.roots = append(w.roots, Root{Name: name, File: file, Line: line})
}

// Override notes that a name, if it is a root, may have other versions than those that who asks for it gives.
func (w *Wants) Override(name string) {
	if folded, ok := w.fold(name); ok && len(w.ranges) <= maxRoots {
		w.ranges[folded] = ""
	}
}

// LeaveOut notes what is no root.
func (w *Wants) LeaveOut(file string, line int, text, why string) {
	l := LeftOut{file, line, text, why}
	if w.told[l] || len(w.leftOut) > maxLeftOut { // Roots says that there is too much
		return
	}
	w.told[l] = true
	w.leftOut = append(w.leftOut, l)
}

// Withhold notes something by which any name may come from elsewhere than the public registry, or be the project's own, so that
// none becomes a root.
func (w *Wants) Withhold(file string, line int, text, why string) {
	l := LeftOut{file, line, text, why}
	if w.LeaveOut(l.File, l.Line, l.Text, l.Why); w.doubt == "" {
		w.doubt = l.placeText()
	}
}

// AssumePublic has no names withheld: a person says that they come from the public registry.
func (w *Wants) AssumePublic() { w.public = true }

// AssumesPublic tells whether AssumePublic was called.
func (w *Wants) AssumesPublic() bool { return w.public }

// Doubted tells whether names are withheld, or would be.
func (w *Wants) Doubted() bool { return w.doubt != "" || w.elsewhereSeen }

// Roots are each root once, in the order in which they were found, without names that are to be kept or withheld, which are left out
// with their lines. It is an error to ask for more than is listed.
func (w *Wants) Roots() ([]Root, error) {
	w.addUndefined()
	switch {
	case len(w.roots) > maxRoots:
		return nil, fmt.Errorf("the project asks for more than %d packages", maxRoots)
	case len(w.own) > maxOwn || len(w.refers) > maxRefers || len(w.unless) > maxRefers || len(w.defined) > maxRoots:
		return nil, errors.New("the project's lockfiles, workspaces or catalogs have more names than are looked at")
	case len(w.leftOut) > maxLeftOut:
		return nil, fmt.Errorf("the project asks for more than %d things that are no packages of a registry", maxLeftOut)
	}
	var all []Root
	var not []LeftOut
	for _, r := range w.refers {
		if w.defined[r.key] == r.told {
			not = append(not, r.left)
		}
	}
	if len(not) > maxLeftOut {
		return nil, fmt.Errorf("the project asks for more than %d things that are no packages of a registry", maxLeftOut)
	}
	for _, r := range w.roots {
		if why := w.Kept(r.Name); why != "" {
			not = append(not, LeftOut{r.File, r.Line, r.Name, why})
			continue
		}
		folded, _ := w.fold(r.Name)
		r.Range, r.Named = w.ranges[folded], w.named[folded]
		all = append(all, r)
	}
	for _, l := range not { // no more than there are roots and such names
		if !w.told[l] {
			w.told[l] = true
			w.leftOut = append(w.leftOut, l)
		}
	}
	return all, nil
}

// LeftOut are what is no root, in the order in which it was found, behind Roots with what these left out.
func (w *Wants) LeftOut() []LeftOut { return w.leftOut }

// Read are the files that were read.
func (w *Wants) Read() []string { return w.read }

// byteOrderMark is UTF-8's, of which a text may have more than the one that Decode takes away.
const byteOrderMark = "\ufeff"

var errText = errors.New("it is neither UTF-8 nor UTF-16")

// Decode gives a file's text as UTF-8 without a byte order mark, which editors and shells of some systems put there.
func Decode(data []byte) ([]byte, error) {
	var order func(a, b byte) uint16
	switch {
	case bytes.HasPrefix(data, []byte(byteOrderMark)):
		data = data[len(byteOrderMark):]
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = func(a, b byte) uint16 { return uint16(b)<<8 | uint16(a) }
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = func(a, b byte) uint16 { return uint16(a)<<8 | uint16(b) }
	}
	if order == nil {
		if !utf8.Valid(data) {
			return nil, errText
		}
		return data, nil
	}
	if data = data[2:]; len(data)%2 != 0 {
		return nil, errText
	}
	units := make([]uint16, 0, len(data)/2)
	for pair := range slices.Chunk(data, 2) {
		units = append(units, order(pair[0], pair[1]))
	}
	text := string(utf16.Decode(units))
	if strings.ContainsRune(text, utf8.RuneError) {
		return nil, errText
	}
	return []byte(text), nil
}
