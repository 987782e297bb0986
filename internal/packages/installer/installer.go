// Package installer is the contract of a package client: the program that a person or an
// agent types to get packages, such as pip, uv, npm, pnpm or go. One installer is one child
// folder, and package all is the list.
//
// A command that fetches packages is rewritten as one that only resolves, in a scratch copy of the
// project, and puts the files that it found on its standard output, each in a frame. A resolver
// reads these documents, and its result names releases. The result has the form of a lockfile, too,
// in which the client reads it again.
//
// The output of a sandbox may be hostile: documents are read strictly and with limits,
// and what they say counts only as far as the gateway showed it in the same run.
package installer

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Installer is one package client. Implementations have no state and do no I/O.
type Installer interface {
	// Name is the program's: "pip".
	Name() string

	// Ecosystem is that of what it installs.
	Ecosystem() pkgref.Ecosystem

	// Asks returns what follows an install of this client: its options, and the words for
	// what it is to install. It is false for words that install nothing by name. It is
	// asked about what somebody ran, so that nothing depends on it but what is recorded.
	Asks(argv []string) ([]string, bool)

	// Plannable lists the installs that Rewrite knows, in words for people.
	Plannable() []string

	// Rewrite makes an install into one that only resolves. It is false for words that
	// are no install of this client. fault.ErrInvalid says in a sentence why an install
	// can't be rewritten.
	Rewrite(argv []string, p Project) (Rewrite, bool, error)

	// Install is the command that installs releases by name and without a project. Nil:
	// another client of the ecosystem is the one for that.
	Install(wanted []Wanted) []string

	// Settings are environment variables that every sandbox has for this client: where the
	// certificates are, how long it waits, and that it asks for nothing beside its work.
	Settings(s Surroundings) map[string]string

	// Mirror are environment variables that have the client ask a registry. Nil: it asks
	// that one without being told.
	Mirror(r Registry) map[string]string

	// Unbuilt are environment variables that keep the client to what need not be built
	// or run to be installed.
	Unbuilt() map[string]string
}

// Wanted is a package to be installed.
type Wanted struct {
	Name    string
	Version string // "": any
	Asked   string // the word by which somebody asked for it; "": not known
}

// Word is how somebody asks for it: as they did, or name and version with what is between
// them.
func (w Wanted) Word(between string) string {
	switch {
	case w.Asked != "":
		return w.Asked
	case w.Version != "":
		return w.Name + between + w.Version
	}
	return w.Name
}

// Surroundings are what a sandbox offers to its clients.
type Surroundings struct {
	Bundle    string // the file with all certificates that are trusted
	CA        string // the file with the installation's own certificate alone
	Timeout   int    // how long an answer may take, in seconds: a person may be deciding
	Downloads string // an address, with a slash at its end, that says why nothing is to be had there
}

// Registry is one that a client is to ask.
type Registry struct {
	Index   string // its address, as sandboxes see it
	Log     string // the transparency log: a name, or a verifier; "": it has none
	BuiltIn bool   // clients ask it without being told
}

// Project is where the sandbox shows the project that a command is for.
type Project struct {
	Top  string // absolute: the mount that covers it; "": nothing is mounted there
	Here string // where the command starts, relative to Top
}

// Rewrite is a command for the sandbox, and what reads its output.
type Rewrite struct {
	Resolver Resolver
	Argv     []string
}

// Resolver reads what rewrites of one kind leave.
type Resolver struct {
	Name      string // "uv pip"
	Ecosystem pkgref.Ecosystem
	Documents []string // the names that its frames may have

	// Read reads the documents; use Result.
	Read func(Documents) (Result, error)

	// LockName is the name of the lockfile in which the client keeps such a result, and
	// Lock writes it; nil: it is the document of that name.
	LockName string
	Lock     func(Documents, Result) ([]byte, error)

	// LockFits tells other names that tell the same format; nil: there are none. LockRule
	// says them in words, for "a plan of pip writes ...".
	LockFits func(base string) bool
	LockRule string

	// Look are commands that have the gateway look into the files of what was chosen, as far
	// as it is known by now: the documents have one reader each, which is not in the sandbox.
	// Nil: the rewrite fetches the files.
	Look func([]Choice) [][]string
}

// Result reads the documents of a rewrite. Its choices are in order, each once.
func (r Resolver) Result(docs Documents) (Result, error) {
	out, err := r.Read(docs)
	if err != nil {
		return Result{}, err
	}
	if len(out.Choices) > MaxChoices {
		return Result{}, fault.Invalid("the resolver names %d releases; a plan has at most %d", len(out.Choices), MaxChoices)
	}
	slices.SortFunc(out.Choices, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return out, nil
}

// CheckLockName refuses a file name by which the lockfile could not be given to a run
// later: its format is told by its name.
func (r Resolver) CheckLockName(file string) error {
	base := path.Base(file)
	switch {
	case base == r.LockName, r.LockFits != nil && r.LockFits(base):
		return nil
	case r.LockRule != "":
		return fault.Invalid("--lock %s: a plan of %s writes %s", file, r.Name, r.LockRule)
	}
	return fault.Invalid("--lock %s: a plan of %s writes %s; a lockfile's format is told by its name, so give it that one", file, r.Name, r.LockName)
}

// Program is the name of the program that a command starts, without its version: "pip" of
// /usr/bin/pip3.11; "" if there is none.
func Program(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return strings.TrimRight(path.Base(argv[0]), "0123456789.")
}

// WriteLock writes the lockfile of a result. Its result can be read again: it goes
// through the reader that holds a run to it.
func (r Resolver) WriteLock(docs Documents, result Result) ([]byte, error) {
	data, given := docs[r.LockName]
	if r.Lock != nil {
		var err error
		if data, err = r.Lock(docs, result); err != nil {
			return nil, err
		}
	} else if !given {
		return nil, fault.Invalid("the resolver left no %s", r.LockName)
	}
	_, unpinned, err := lockfile.ParseResolved(r.LockName, data)
	if err != nil {
		return nil, err
	}
	if len(unpinned) > 0 {
		return nil, fault.Invalid("no lockfile can hold %s %s: what is served of it is made in a sandbox of its own when it is first installed, and has no hash before that", unpinned[0].Name, unpinned[0].Version)
	}
	return data, nil
}
