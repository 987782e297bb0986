package advisory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// osvRange is a set of versions, told by the events that begin and end it.
type osvRange struct {
	Type   string     `json:"type"`
	Events []osvEvent `json:"events"`
}

// osvEvent has exactly one member.
type osvEvent struct {
	Introduced   *string `json:"introduced"`
	Fixed        *string `json:"fixed"`
	LastAffected *string `json:"last_affected"`
	Limit        *string `json:"limit"`
}

// meantVersions says which versions are, of malware and of a vulnerability alike. A range that
// can't be read is widened, never dropped: then all versions are meant.
func (a *osvAffected) meantVersions(ecosystem pkgref.Ecosystem) (m policy.Malware, widened bool) {
	for _, v := range a.Versions {
		if canonical, ok := canonicalVersion(ecosystem, v); ok {
			m.Versions = append(m.Versions, canonical)
		}
	}
	for _, r := range a.Ranges {
		if r.Type == "GIT" { // commits, which no registry serves
			continue
		}
		ranges, ok := r.translate(ecosystem)
		if !ok {
			return policy.Malware{Every: true}, true
		}
		m.Ranges = append(m.Ranges, ranges...)
	}
	if slices.ContainsFunc(m.Ranges, unbounded) {
		return policy.Malware{Every: true}, false
	}
	if len(m.Versions) == 0 && len(m.Ranges) == 0 {
		return policy.Malware{Every: true}, len(a.Versions)+len(a.Ranges) > 0
	}
	return m, false
}

// unbounded ranges burn the name.
func unbounded(r policy.AffectedRange) bool {
	return r.Introduced == "0" && r.Fixed == "" && r.LastAffected == ""
}

// eventKind orders events of one version: what ends a range comes before what
// begins the next one, and a last affected version after its own beginning.
type eventKind int

const (
	fixed eventKind = iota
	introduced
	lastAffected
)

// event is a readable osvEvent.
type event struct {
	kind    eventKind
	version string // canonical, or "0"
}

// translate turns events, in whatever order, into ranges; ok is false if they
// can't be read.
func (r *osvRange) translate(ecosystem pkgref.Ecosystem) (ranges []policy.AffectedRange, ok bool) {
	if r.Type != "SEMVER" && r.Type != "ECOSYSTEM" {
		return nil, false
	}
	events, limit, ok := r.readEvents(ecosystem)
	if !ok {
		return nil, false
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(compareVersions(ecosystem, a.version, b.version), cmp.Compare(a.kind, b.kind))
	})
	var open *policy.AffectedRange
	for _, e := range events {
		switch {
		case e.kind == introduced && open == nil:
			open = &policy.AffectedRange{Introduced: e.version}
		case e.kind == fixed && open != nil:
			open.Fixed = e.version
		case e.kind == lastAffected && open != nil:
			open.LastAffected = e.version
		}
		if e.kind != introduced && open != nil {
			ranges, open = append(ranges, *open), nil
		}
	}
	if open != nil {
		open.Fixed = limit
		ranges = append(ranges, *open)
	}
	return ranges, len(ranges) > 0
}

// readEvents makes events of versions that can be compared. Of limits only a single
// one narrows; with several, all that has begun is meant.
func (r *osvRange) readEvents(ecosystem pkgref.Ecosystem) (events []event, limit string, ok bool) {
	limits := 0
	for _, e := range r.Events {
		kind, text, ok := e.onlyMember()
		if !ok {
			return nil, "", false
		}
		if text == "0" && kind == introduced {
			events = append(events, event{introduced, "0"})
			continue
		}
		if e.Limit != nil && text == "*" {
			limits += 2
			continue
		}
		version, ok := canonicalVersion(ecosystem, text)
		switch {
		case !ok:
			return nil, "", false
		case e.Limit != nil:
			limits++
			limit = version
		default:
			events = append(events, event{kind, version})
		}
	}
	if limits != 1 {
		limit = ""
	}
	return events, limit, true
}

// onlyMember is the event's one member.
func (e *osvEvent) onlyMember() (kind eventKind, text string, ok bool) {
	n := 0
	for k, member := range []*string{fixed: e.Fixed, introduced: e.Introduced, lastAffected: e.LastAffected, lastAffected + 1: e.Limit} {
		if member != nil {
			kind, text = eventKind(k), *member
			n++
		}
	}
	return kind, text, n == 1
}

// canonicalVersion is the version as this product writes it. The OSV format
// writes some without their letter.
func canonicalVersion(ecosystem pkgref.Ecosystem, version string) (string, bool) {
	if letter := ecosystem.Traits().VersionLetter; version != "" && !strings.HasPrefix(version, letter) {
		version = letter + version
	}
	canonical, err := pkgref.CanonicalVersion(ecosystem, version)
	return canonical, err == nil
}

// compareVersions compares canonical versions; "0" is before all.
func compareVersions(ecosystem pkgref.Ecosystem, a, b string) int {
	if a == "0" || b == "0" {
		return cmp.Compare(boolInt(a != "0"), boolInt(b != "0"))
	}
	return pkgref.Compare(ecosystem, a, b)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
