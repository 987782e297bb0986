// Package records is what the log says of sandboxes: how decisions become records, and
// the Book in which one sandbox has its own, within its quota, each refusal once.
package records

import (
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// The subjects of a refusal, for `cofferdam why`.
const (
	WhatPackage = "package" // a file, or all of a project's files
	WhatIndex   = "index"   // some of a project's files
	WhatName    = "name"
	WhatCommand = "command"
	WhatTool    = "tool"
)

// Keys of Record.Detail.
const (
	DetailSuggest   = "suggest"   // policy lines that would allow it
	DetailWantedBy  = "wanted_by" // allowed parents, for people
	DetailWants     = "wants"     // the specifiers of the first few, WantsBetween between
	DetailParents   = "parents"   // the projects of those, canonical names with spaces between
	DetailExtras    = "extras"    // what only extras bring that nothing asks for: "rich[jupyter]", with spaces between
	DetailWhat      = "what"      // of a withheld record: package or index
	DetailPull      = "pull"      // of a withheld record: a ledger.Pull
	DetailIndex     = "index_digest"
	DetailName      = "name"       // of a network record
	DetailTool      = "tool"       // of a tool's records: its name, or the guest's word for it
	DetailPort      = "port"       // of a connection; not there: of a DNS question
	DetailProtocol  = "protocol"   // by which a connection's client said which host it means
	DetailSecret    = "secret"     // of a request that uses one, or that has a placeholder left: its name
	DetailAddresses = "addresses"  // that a connection's host was found to have
	DetailAddress   = "address"    // of them, the one that was connected to
	DetailRequest   = "request"    // of a request: its method and its path
	DetailRefs      = "refs"       // of a push of which a person is asked: what it changes
	DetailPush      = "push"       // the digest of that
	DetailBytesOut  = "bytes_out"  // of a connection, or of a request, that has ended: to the host
	DetailBytesIn   = "bytes_in"   // and from it
	DetailBegan     = "began_seq"  // of a connection or a call that has ended, or of a request: the record that the connection, or the call, began
	DetailThrough   = "through"    // of a served record: Decision.Through
	DetailServed    = "served_seq" // of an aborted record
	DetailWhere     = "where"      // of a finding: the command, the file, or the host and the place in the request; of a secret: the place in the request
	DetailAction    = "action"     // of a finding: report, redact or block; would_redact, would_block
	DetailAt        = "at"         // of a finding: where the value begins, in bytes
	DetailLength    = "length"     // of a finding
	DetailDigest    = "keyed"      // of a finding: tells equal values, to this installation alone
	DetailLate      = "late"       // of a finding: "true": a part had gone out
	DetailKind      = "kind"       // of a refusal: what was asked for, if it was no file that could be installed
	DetailBundled   = "bundled"    // of a served record: packages inside the file
	DetailBundledIn = "bundled_in" // of an installed record: the release that brought it
	DetailConsists  = "contents"   // of a served record: the digest of what the file is once it is unpacked
	DetailFindings  = "findings"   // of a served record: peculiarities
	DetailCommand   = "command_id" // of a command's records
	// DetailUpstreamDigest is of a served record: the digest by the upstream or a
	// witness, where it is not the sha256.
	DetailUpstreamDigest = "upstream_digest"
	// Of a built record, and of a refusal to build: the source distribution and its digest,
	// the run of the sandbox that it was built in, the end of what the build wrote, and the
	// name that the build gave its file.
	DetailSource       = "source"
	DetailSourceDigest = "source_digest"
	DetailBuildRun     = "build_run"
	DetailBuildOutput  = "build_output"
	DetailBuiltAs      = "built_as"
	DetailTemplate     = "template"
	DetailEngine       = "engine"
	DetailUnaccounted  = "unaccounted" // of an installed record: nothing of it was served
	DetailHappened     = "happened"    // of a record that the log did not take at first: when what it tells of was to be recorded
	DetailWould        = "would"       // of what was let through since the policy only observes: deny or hold
)

// Keys of Record.Detail that the log itself reads.
const (
	DetailEvent = audit.DetailEvent
	DetailAlarm = audit.DetailAlarm // "true": see audit.Record.IsAlarm and policy.Decision
)

// EventRepeats is the DetailEvent of a record that stands for repeats of an earlier one.
const EventRepeats = audit.EventRepeats

// WantsBetween is between the specifiers of DetailWants; none has it.
const WantsBetween = "; "

// RefOf is the release that a record is about.
func RefOf(r audit.Record) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Ecosystem(r.Ecosystem), Name: r.Package, Version: r.InstalledVersion}
}

// ProjectOf is the package that a record is about.
func ProjectOf(r audit.Record) pkgref.Ref { return RefOf(r).Project() }

// SetRef puts a package into a record.
func SetRef(r *audit.Record, p pkgref.Ref) {
	r.Ecosystem, r.Package, r.InstalledVersion = string(p.Ecosystem), p.Name, p.Version
}

// Explain puts into a record what only a refusal has: the lines that would
// allow it, who wanted it, what a lockfile says, and whether it is an alarm.
func Explain(r *audit.Record, d policy.Decision) {
	detail := maps.Clone(r.Detail)
	if detail == nil {
		detail = map[string]string{}
	}
	if d.Suggest != "" {
		detail[DetailSuggest] = redact.Cut(d.Suggest, 4_096)
	}
	if wanted := wantedBy(d.WantedBy); wanted != "" {
		detail[DetailWantedBy] = wanted
		detail[DetailParents] = parents(d.WantedBy)
		if unasked := extrasOf(d.WantedBy); unasked != "" {
			detail[DetailExtras] = unasked
		}
		if specifiers := parentSpecifiers(d.WantedBy); specifiers != "" {
			detail[DetailWants] = redact.Cut(specifiers, 1_024)
		}
	}
	if d.Alarm {
		detail[DetailAlarm] = "true"
	}
	if len(detail) > 0 {
		r.Detail = detail
	}
	r.RequestedVersion = redact.Cut(d.Pinned, 512)
}

// wantedBy names the first few parents: "rich 13.0.1 (pygments >=2.13)".
func wantedBy(edges []policy.Edge) string {
	const most = 3
	text := ""
	for i, e := range edges {
		if i == most {
			return text + " and others"
		}
		if i > 0 {
			text += ", "
		}
		text += e.Parent.Name + " " + e.Parent.Version
		if e.Specifier != "" {
			text += " (" + e.Name + " " + redact.Cut(e.Specifier, 100) + ")"
		}
	}
	return text
}

// parentSpecifiers are the specifiers of the first few parents, those that take any version left
// out.
func parentSpecifiers(edges []policy.Edge) string {
	var specifiers []string
	for _, e := range edges[:min(len(edges), 3)] {
		if e.Specifier != "" && !strings.Contains(e.Specifier, ";") && !slices.Contains(specifiers, e.Specifier) {
			specifiers = append(specifiers, e.Specifier)
		}
	}
	return strings.Join(specifiers, WantsBetween)
}

// parents names the projects of the first few parents.
func parents(edges []policy.Edge) string {
	var names []string
	for _, e := range edges[:min(len(edges), 3)] {
		if !slices.Contains(names, e.Parent.Name) {
			names = append(names, e.Parent.Name)
		}
	}
	return strings.Join(names, " ")
}

// extrasOf names the extras by which nothing but they brings a package: "rich[jupyter]",
// with spaces between; "" if something else does.
func extrasOf(edges []policy.Edge) string {
	var names []string
	for _, e := range edges[:min(len(edges), 3)] {
		if e.Unasked == "" {
			return ""
		}
		extra, _, _ := strings.Cut(e.Unasked, ",")
		if name := e.Parent.Name + "[" + extra + "]"; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// WithParents names who wanted a package, in place of the policy's shorter word
// for it.
func WithParents(reason, parents string) string {
	if strings.HasSuffix(reason, ", which nothing asks for") {
		return reason // it names the parent, and why that does not do
	}
	if i := strings.LastIndex(reason, "; "); i >= 0 && strings.HasSuffix(reason, " requires it") {
		reason = reason[:i]
	}
	return reason + "; wanted by " + parents
}

// WaitedAs is WaitsAs at a run's end, when an answer for that run alone is too late.
func WaitedAs(id string) string {
	return "; it waits as " + id + ", on the host: " + door.ApproveCommand("--scope policy "+id)
}

// WaitsAs follows the reason of what waits.
func WaitsAs(id string) string {
	return "; it waits as " + id + ", on the host: " + door.ApproveCommand(id)
}
