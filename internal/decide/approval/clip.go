package approval

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Bounds of what others control. They keep every record below audit.MaxRecord,
// whatever has to be escaped in it.
const (
	maxShort    = 300     // bytes of a name, an id, a line of evidence
	maxWhole    = 2_500   // bytes of a line about what is decided; gitwire's bounds are below it
	maxCuts     = 8       // digests of a list that is not there whole
	maxLong     = 2_000   // bytes of a reason, a task
	maxList     = 60      // entries of a list of evidence
	maxPlaces   = 20      // entries of WantedBy
	maxDigests  = 4       // of one file
	maxDigest   = 200     // bytes of one
	maxFiles    = 500     // of a request
	maxBound    = 100_000 // bytes of all digests of a request: an answer's record names them
	maxFileData = 60_000  // bytes of files in one record, as JSON within JSON
	maxEvidence = 60_000  // the same, of evidence
	maxRuns     = 2_000   // that a request knows by name
)

// cleanAsk checks an ask and bounds its texts.
func cleanAsk(ask Ask) (Ask, error) {
	err := checkSubject(ask)
	switch {
	case err != nil:
		return Ask{}, err
	case ask.Run == "":
		return Ask{}, fault.Invalid("nobody can be asked about %s without the run that wants it", boundText(ask.matter().String(), maxShort))
	case ask.Group != "" && !wellFormed(groupPrefix, ask.Group):
		return Ask{}, fault.Invalid("%q is not a group's id", boundText(ask.Group, maxShort))
	case len(ask.Files) > maxFiles:
		return Ask{}, fault.Invalid("%s has %d files; a person can be asked about %d at most", boundText(ask.Package.String(), maxShort), len(ask.Files), maxFiles)
	}
	for _, s := range []*string{&ask.Upstream, &ask.Run, &ask.Sandbox, &ask.Policy, &ask.User, &ask.Token, &ask.OwnerKey, &ask.Rule} {
		*s = boundText(*s, maxShort)
	}
	for _, s := range []*string{&ask.PolicyName, &ask.Task, &ask.Because, &ask.Reason} {
		*s = boundText(*s, maxLong)
	}
	ask.Notes = clipList(ask.Notes, maxNotes, maxLong)
	ask.WantedBy = clipList(ask.WantedBy, maxPlaces, maxShort)
	if ask.Files, err = cleanFiles(ask.Files); err != nil {
		return Ask{}, err
	}
	ask.Evidence = cleanEvidence(ask.Evidence)
	return ask, checkShown(ask)
}

// checkShown refuses to ask about what a person would not be shown whole.
func checkShown(ask Ask) error {
	if n := encodedSize(ask.Evidence); n > roomFor(ask.Evidence) {
		return fault.New(fault.ErrForbidden, "%s can't be shown whole, so nobody is asked: what is known of it takes %d bytes", boundText(ask.matter().String(), maxShort), n)
	}
	return nil
}

// checkSubject refuses an ask for what is neither a release, nor a host, nor a call.
func checkSubject(ask Ask) error {
	switch {
	case ask.Call.isNamed():
		return checkCall(ask)
	case ask.Host.isNamed():
		return checkHost(ask)
	}
	ref, err := pkgref.New(ask.Package.Ecosystem, ask.Package.Name, ask.Package.Version)
	if err == nil && (ref != ask.Package || ref.Version == "") {
		err = fault.Invalid("%q is not a release in canonical form, so nobody can be asked about it", boundText(ask.Package.String(), maxShort))
	}
	return err
}

func cleanFiles(files []File) ([]File, error) {
	seen := map[string]bool{}
	cleaned := make([]File, 0, len(files))
	for _, f := range files {
		switch {
		case f.Name == "" || len(f.Name) > maxShort || seen[f.Name]:
			return nil, fault.Invalid("%q is not a file name, or is listed twice", boundText(f.Name, maxShort))
		case len(f.Digests) > maxDigests:
			return nil, fault.Invalid("the file %s has more than %d digests", boundText(f.Name, maxShort), maxDigests)
		}
		seen[f.Name] = true
		for _, d := range f.Digests {
			algorithm, sum, ok := strings.Cut(d, ":")
			if !ok || algorithm == "" || sum == "" || len(d) > maxDigest || strings.ContainsAny(d, " \t\r\n") || !utf8.ValidString(d) {
				return nil, fault.Invalid("%q is not a digest of the file %s", boundText(d, maxShort), boundText(f.Name, maxShort))
			}
		}
		f.Name, f.Kind, f.Published = boundText(f.Name, maxShort), boundText(f.Kind, maxShort), plainTime(f.Published)
		cleaned = append(cleaned, f)
	}
	return cleaned, nil
}

// cleanEvidence bounds each text and then the whole, by shortening lists: first those of which
// the least depends, and never what is decided about.
func cleanEvidence(e evidence.Evidence) evidence.Evidence {
	e = e.Apart()
	e.Published, e.FirstSeen = plainTime(e.Published), plainTime(e.FirstSeen)
	for _, s := range e.Texts() {
		*s = boundText(*s, maxShort)
	}
	most := map[evidence.Order]int{evidence.Warning: maxList, evidence.Detail: maxList}
	for {
		cut := e.Apart()
		for _, l := range cut.Lists() {
			clipEvidence(&cut, l, most)
		}
		switch {
		case encodedSize(cut) <= roomFor(e) || most[evidence.Warning] == 0:
			return cut
		case most[evidence.Detail] > 0:
			most[evidence.Detail] /= 2
		default:
			most[evidence.Warning] /= 2
		}
	}
}

// roomFor is how long evidence may be in a record: that of a push has the room of files, of
// which it has none.
func roomFor(e evidence.Evidence) int {
	if e.Host != nil && len(e.Host.Refs) > 0 {
		return maxEvidence + maxFileData
	}
	return maxEvidence
}

// clipEvidence bounds one list, and notes how much of it is not there any more.
func clipEvidence(e *evidence.Evidence, l evidence.List, most map[evidence.Order]int) {
	all := *l.Values
	if len(all) == 0 {
		return
	}
	if l.Order == evidence.Whole {
		*l.Values = clipList(all, len(all), maxWhole)
		return
	}
	*l.Values = clipList(all, most[l.Order], maxShort)
	if len(*l.Values) == len(all) {
		return
	}
	cut := e.Cut[l.Name]
	cut.Total = max(cut.Total, len(all))
	if d := text.DigestList(all); !slices.Contains(cut.Digests, d) && len(cut.Digests) < maxCuts {
		cut.Digests = append(slices.Clip(cut.Digests), d)
	}
	if e.Cut == nil {
		e.Cut = map[string]evidence.Cut{}
	}
	e.Cut[l.Name] = cut
}

// mergeCuts merges the cuts of both.
func mergeCuts(known, more map[string]evidence.Cut) map[string]evidence.Cut {
	merged := maps.Clone(known)
	for name, cut := range more {
		own := merged[name]
		own.Total = max(own.Total, cut.Total)
		for _, d := range cut.Digests {
			if !slices.Contains(own.Digests, d) && len(own.Digests) < maxCuts {
				own.Digests = append(slices.Clip(own.Digests), d)
			}
		}
		if merged == nil {
			merged = map[string]evidence.Cut{}
		}
		merged[name] = own
	}
	return merged
}

// mergeEvidence fills what was not known, and adds to the lists; changed tells
// whether anything came.
func mergeEvidence(known, more evidence.Evidence) (merged evidence.Evidence, changed bool) {
	merged = known.Apart()
	merged.Vulnerabilities = evidence.NewerVulnerabilities(known.Vulnerabilities, more.Vulnerabilities)
	if merged.Inside == nil {
		merged.Inside = more.Apart().Inside
	}
	if merged.Host == nil {
		merged.Host = more.Apart().Host
	}
	if merged.Call == nil {
		merged.Call = more.Apart().Call
	}
	merged.FilesUnknown = merged.Installed == "" && more.FilesUnknown || known.FilesUnknown
	if merged.Published.IsZero() {
		merged.Published = more.Published
	}
	if merged.FirstSeen.IsZero() {
		merged.FirstSeen = more.FirstSeen
	}
	merged.Versions = max(known.Versions, more.Versions)
	texts := more.Texts()
	for i, s := range merged.Texts() {
		if *s == "" {
			*s = *texts[i]
		}
	}
	lists := more.Lists()
	for i, l := range merged.Lists() {
		for _, item := range *lists[i].Values {
			if !slices.Contains(*l.Values, item) {
				*l.Values = append(slices.Clip(*l.Values), item)
			}
		}
	}
	merged.Cut = mergeCuts(known.Cut, more.Cut)
	merged = cleanEvidence(merged)
	return merged, encoded(merged) != encoded(known)
}

// lacksEvidence tells that some list is shorter than it was: there is no room for more.
// The facts only ever grow, or asks in turn would change it for ever.
func lacksEvidence(e, was evidence.Evidence) bool {
	before := was.Lists()
	for i, l := range e.Lists() {
		if len(*l.Values) < len(*before[i].Values) {
			return true
		}
	}
	return false
}

func encoded(e evidence.Evidence) string {
	text, _ := json.Marshal(e) // strings, numbers and times
	return string(text)
}

// encodedSize is how long a value is as JSON in a JSON string.
func encodedSize(v any) int {
	inner, _ := json.Marshal(v) // of plain types: it can't fail
	outer, _ := json.Marshal(string(inner))
	return len(outer)
}

// boundText bounds text to about so many bytes of valid UTF-8. Others wrote it and a person decides
// by it, so what is cut says how much, and has a digest of the whole.
func boundText(s string, most int) string { return text.Seal(s, most) }

func clipList(list []string, most, length int) []string {
	if len(list) == 0 || most == 0 {
		return nil
	}
	clipped := make([]string, 0, min(len(list), most))
	for _, s := range list[:min(len(list), most)] {
		clipped = append(clipped, boundText(s, length))
	}
	return clipped
}

// plainTime is a time as the log gives it back.
func plainTime(t time.Time) time.Time { return t.UTC().Round(0) }
