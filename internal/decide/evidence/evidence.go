// Package evidence is what is known about a release, a host or a call of a tool, for a
// person who decides about it.
//
// Everything in it was told by upstreams, imported lists or the file itself, so it
// helps to judge and decides nothing.
package evidence

import (
	"maps"
	"time"
)

// Evidence is what is known about a release, for the person who answers. All of
// it is told by upstreams and imported lists but for LastApproved.
type Evidence struct {
	Published  time.Time `json:"published,omitzero"`
	FirstSeen  time.Time `json:"first_seen,omitzero"`  // by this installation
	Popularity string    `json:"popularity,omitempty"` // "rank 812 of 15000 (list top-pypi)", "" if no list has it
	Similar    string    `json:"similar,omitempty"`    // "requests: one letter differs"
	Advisories []string  `json:"advisories,omitempty"` // ids, with summaries
	Scripts    []string  `json:"scripts,omitempty"`    // what runs at installation: "postinstall: node x.js"
	Findings   []string  `json:"findings,omitempty"`   // what the gateway noticed in the file
	Maintainer string    `json:"maintainer,omitempty"`
	Summary    string    `json:"summary,omitempty"` // the publisher's
	Homepage   string    `json:"homepage,omitempty"`
	License    string    `json:"license,omitempty"`
	Versions   int       `json:"versions,omitempty"` // releases of the project
	Requires   []string  `json:"requires,omitempty"` // its dependencies, "name specifier"
	// Vulnerabilities are the known ones; nil: they were not looked for (see Unchecked). Its content never
	// changes.
	Vulnerabilities *Vulnerabilities `json:"vulnerabilities,omitempty"`
	// Inside is what the file brings; nil: it was not looked into.
	Inside *Inside `json:"inside,omitempty"`
	// Installed is the version of it that the run has already, and NewFiles those that
	// this one brings and that one does not. FilesUnknown: they could not be compared.
	Installed    string   `json:"installed,omitempty"`
	NewFiles     []string `json:"new_files,omitempty"`
	FilesUnknown bool     `json:"files_unknown,omitempty"`
	// Unchecked are checks that could not be made here, a sentence each: that nothing
	// was found by them means nothing.
	Unchecked []string `json:"unchecked,omitempty"`
	// LastApproved is the last version of it that was approved here, and Changes
	// what differs from that: dependencies added and gone, scripts, maintainer, size.
	LastApproved string   `json:"last_approved,omitempty"`
	Changes      []string `json:"changes,omitempty"`
	// Host is what is known of a host on the network; nil: it is about something else.
	Host *Host `json:"host,omitempty"`
	// Call is what is known of a call of a tool; nil: it is about something else.
	Call *Call `json:"call,omitempty"`
	// Cut are the lists of which only the beginning is here, by their names, such as
	// "findings" and "inside.native".
	Cut map[string]Cut `json:"cut,omitempty"`
}

// Cut is how much of a list is not here.
type Cut struct {
	Total int `json:"total"` // entries that are known of at least, those that are here among them
	// Digests are of the whole lists that were told, text.DigestList each: two evidences that
	// differ in what is not here differ in them.
	Digests []string `json:"digests"`
}

// Call is what is known of a call of a tool of the host that somebody wants to make.
type Call struct {
	Commands    []string `json:"commands,omitempty"`    // that ran in the sandbox when it was asked for
	Description string   `json:"description,omitempty"` // of the tool, by who declared it
	// How earlier requests for the tool were answered, the last hundred of them.
	Approved int `json:"approved"` // with these arguments
	Others   int `json:"others"`   // with others
	Denied   int `json:"denied"`
}

// Host is what is known of a host that somebody wants to connect to. Nothing of it was
// asked of the host, or of anybody who would tell it.
type Host struct {
	Commands []string `json:"commands,omitempty"` // that ran in the sandbox when it was asked for
	Protocol string   `json:"protocol,omitempty"` // in which its client said that it means this host: tls or http
	// Of a push, what it changes, a ref each with the objects before and after, and the
	// options that the host gets with it.
	Refs    []string `json:"refs,omitempty"`
	Options []string `json:"options,omitempty"`
	Objects int      `json:"objects,omitempty"` // that it says it brings
	Bytes   int64    `json:"bytes,omitempty"`   // of all of it; 0: not known
}

// Inside is what a file brings, by names that its publisher wrote.
type Inside struct {
	Modules     []string `json:"modules,omitempty"`      // that programs can import
	EntryPoints []string `json:"entry_points,omitempty"` // programs and hooks that installing it makes known
	Starts      []string `json:"starts,omitempty"`       // files whose lines run at every start of the interpreter, such as .pth
	Native      []string `json:"native,omitempty"`       // files of machine code
	Files       int      `json:"files"`                  // how many there are
	// Of code that runs when it is installed: what runs where it is built from its source, lines
	// of it to read, "FILE:LINE DOES THIS: TEXT", and files that are compiled, by kind.
	Builds  []string `json:"builds,omitempty"`
	Suspect []string `json:"suspect,omitempty"`
	Sources []string `json:"sources,omitempty"`
	Read    int      `json:"read,omitempty"` // texts of that code that were looked at for such lines; 0: it is not known
}

// Count is how many entries of a list are known of at least: those that are here, and those
// that were cut. "" is no list: 0.
func (e Evidence) Count(list string) int {
	for _, l := range e.Lists() {
		if l.Name == list {
			return max(len(*l.Values), e.Cut[list].Total)
		}
	}
	return 0
}

// Apart is the evidence with an Inside, a Host, a Call and a Cut of its own.
func (e Evidence) Apart() Evidence {
	e.Cut = maps.Clone(e.Cut)
	if e.Inside != nil {
		own := *e.Inside
		e.Inside = &own
	}
	if e.Host != nil {
		own := *e.Host
		e.Host = &own
	}
	if e.Call != nil {
		own := *e.Call
		e.Call = &own
	}
	return e
}

// Texts are its single texts, to change in place; those of what is nil are not kept.
func (e *Evidence) Texts() []*string {
	host := e.Host
	if host == nil {
		host = &Host{} // nothing is kept in it
	}
	call := e.Call
	if call == nil {
		call = &Call{}
	}
	return []*string{&host.Protocol, &call.Description, &e.Popularity, &e.Similar, &e.Maintainer, &e.Summary, &e.Homepage, &e.License, &e.LastApproved, &e.Installed}
}

// List is a list of the evidence, to change in place.
type List struct {
	Name   string // in Cut
	Values *[]string
	// Order is which lists are cut first where not all have room: the highest. Whole lists are
	// what a person decides about, and are never cut.
	Order Order
}

// Order is how much depends on a list.
type Order int

// The orders.
const (
	Whole   Order = iota // what is decided about: it is here whole, or nobody is asked
	Warning              // what speaks against it
	Detail               // anything else
)

// Lists are its lists; those of what is nil are not kept.
func (e *Evidence) Lists() []List {
	in := e.Inside
	if in == nil {
		in = &Inside{} // nothing is kept in it
	}
	host := e.Host
	if host == nil {
		host = &Host{}
	}
	call := e.Call
	if call == nil {
		call = &Call{}
	}
	return []List{
		{"host.refs", &host.Refs, Whole},
		{"host.options", &host.Options, Whole},
		{"advisories", &e.Advisories, Warning},
		{"findings", &e.Findings, Warning},
		{"scripts", &e.Scripts, Warning},
		{"unchecked", &e.Unchecked, Warning},
		{"inside.suspect", &in.Suspect, Warning},
		{"inside.builds", &in.Builds, Warning},
		{"inside.starts", &in.Starts, Warning},
		{"inside.native", &in.Native, Warning},
		{"changes", &e.Changes, Warning},
		{"host.commands", &host.Commands, Detail},
		{"call.commands", &call.Commands, Detail},
		{"requires", &e.Requires, Detail},
		{"new_files", &e.NewFiles, Detail},
		{"inside.modules", &in.Modules, Detail},
		{"inside.entry_points", &in.EntryPoints, Detail},
		{"inside.sources", &in.Sources, Detail},
	}
}
