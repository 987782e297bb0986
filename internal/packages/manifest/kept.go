package manifest

import (
	"slices"
	"strings"
)

// referred is a name that a manifest asks for by what another one says of it.
type referred struct {
	key  string
	left LeftOut
	told bool // where the key is defined, as against where it is not
}

// Refer notes a name that is asked for by what another manifest says of it, such as a catalog: unless one is read that Defines the key,
// Roots tells that it is left out.
func (w *Wants) Refer(key, file string, line int, text, why string) {
	if len(w.refers) <= maxRefers { // Roots says that there is too much
		w.refers = append(w.refers, referred{key, LeftOut{file, line, text, why}, false})
	}
}

// LeaveOutIf notes what is left out if a manifest is read that Defines the key, before this one or behind it.
func (w *Wants) LeaveOutIf(key, file string, line int, text, why string) {
	if len(w.refers) <= maxRefers { // Roots says that there is too much
		w.refers = append(w.refers, referred{key, LeftOut{file, line, text, why}, true})
	}
}

// AddUnless notes a root, as Add does, unless a manifest is read that Defines the key, before this one or behind it.
func (w *Wants) AddUnless(key, name, file string, line int) {
	if len(w.unless) <= maxRefers { // Roots says that there is too much
		w.unless = append(w.unless, conditional{key, Root{Name: name, File: file, Line: line}})
	}
}

// conditional is a root but where its key is defined.
type conditional struct {
	key  string
	root Root
}

// addUndefined adds the roots whose keys no manifest defined.
func (w *Wants) addUndefined() {
	for _, c := range w.unless {
		if !w.defined[c.key] {
			w.Add(c.root.Name, c.root.File, c.root.Line)
		}
	}
}

// Define notes that a manifest says what a key is, wherever that leads.
func (w *Wants) Define(key string) {
	if len(w.defined) <= maxRoots {
		w.defined[key] = true
	}
}

// Keep notes a name that is the project's own, or comes from elsewhere than the registry: it becomes no root, whoever asks
// for it.
func (w *Wants) Keep(name string) {
	if folded, ok := w.fold(name); ok {
		w.own[folded] = "the project has this name itself, or takes it from elsewhere"
	}
}

// KeepBy keeps a name for a reason, which is a sentence's part; the first counts.
func (w *Wants) KeepBy(name, why string) {
	folded, ok := w.fold(name)
	if _, kept := w.own[folded]; ok && !kept && len(w.own) <= maxOwn {
		w.own[folded] = why
	}
}

// Builds notes a name whose package may run something when it is installed: the project says so.
func (w *Wants) Builds(name, file string, line int) {
	if folded, ok := w.fold(name); ok && len(w.builds) <= maxOwn {
		if _, noted := w.builds[folded]; !noted {
			w.builds[folded] = Place{file, line}
		}
	}
}

// MayBuild tells where Builds found a name, if it did.
func (w *Wants) MayBuild(name string) (at Place, is bool) {
	folded, _ := w.fold(name)
	at, is = w.builds[folded]
	return at, is
}

// Place is a line of a file; line 0 is not known.
type Place struct {
	File string
	Line int
}

func (p Place) String() string { return LeftOut{File: p.File, Line: p.Line}.placeText() }

// Elsewhere tells of another registry that some names come from, which are kept.
func (w *Wants) Elsewhere(file string, line int, text, why string) {
	w.elsewhereSeen = true
	w.LeaveOut(file, line, text, why)
}

// KeepAll keeps all names that begin so, in whatever letters.
func (w *Wants) KeepAll(beginning string) { w.ownAll = append(w.ownAll, strings.ToLower(beginning)) }

// whyKept tells why a name is kept, "" if it is not.
func (w *Wants) whyKept(folded string) string {
	if why := w.own[folded]; why != "" {
		return why
	}
	if slices.ContainsFunc(w.ownAll, func(b string) bool { return strings.HasPrefix(strings.ToLower(folded), b) }) {
		return "the project has this name itself, or takes it from elsewhere"
	}
	return ""
}

// maxNamed bounds the ranges that are kept of one name.
const maxNamed = 20

// Name notes a range that a manifest names a package with, whether or not others may be taken. Of a name that is no root
// nothing comes of it.
func (w *Wants) Name(name, among string) {
	folded, ok := w.fold(name)
	if ok && among != "" && len(w.named) <= maxRoots && len(w.named[folded]) < maxNamed && !slices.Contains(w.named[folded], among) {
		w.named[folded] = append(w.named[folded], among)
	}
}

// Kept tells why a name is no root, whoever asks for it; "" if it may be one.
func (w *Wants) Kept(name string) string {
	folded, ok := w.fold(name)
	switch why := w.whyKept(folded); {
	case !ok:
		return "it is no name of a package"
	case why == "" && w.doubt != "" && !w.public:
		return "whether it comes from the public registry is not known: see " + w.doubt
	default:
		return why
	}
}
