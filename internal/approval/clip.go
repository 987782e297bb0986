package approval

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Bounds of what others control. They keep every record below audit.MaxRecord,
// whatever has to be escaped in it.
const (
	maxShort    = 300     // bytes of a name, an id, a line of evidence
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

// clean checks an ask and bounds its texts.
func clean(ask Ask) (Ask, error) {
	err := checkSubject(ask)
	switch {
	case err != nil:
		return Ask{}, err
	case ask.Run == "":
		return Ask{}, fault.Invalid("nobody can be asked about %s without the run that wants it", valid(ask.matter().String(), maxShort))
	case ask.Group != "" && !wellFormed(groupPrefix, ask.Group):
		return Ask{}, fault.Invalid("%q is not a group's id", valid(ask.Group, maxShort))
	case len(ask.Files) > maxFiles:
		return Ask{}, fault.Invalid("%s has %d files; a person can be asked about %d at most", valid(ask.Package.String(), maxShort), len(ask.Files), maxFiles)
	}
	for _, s := range []*string{&ask.Upstream, &ask.Run, &ask.Sandbox, &ask.Policy, &ask.User, &ask.Token, &ask.OwnerKey, &ask.Rule} {
		*s = valid(*s, maxShort)
	}
	for _, s := range []*string{&ask.PolicyName, &ask.Task, &ask.Because, &ask.Reason} {
		*s = valid(*s, maxLong)
	}
	ask.Notes = clipList(ask.Notes, maxNotes, maxLong)
	ask.WantedBy = clipList(ask.WantedBy, maxPlaces, maxShort)
	if ask.Files, err = cleanFiles(ask.Files); err != nil {
		return Ask{}, err
	}
	ask.Evidence = cleanEvidence(ask.Evidence)
	return ask, nil
}

// checkSubject refuses an ask for what is neither a release, nor a host, nor a call.
func checkSubject(ask Ask) error {
	switch {
	case ask.Call.named():
		return checkCall(ask)
	case ask.Host.named():
		return checkHost(ask)
	}
	ref, err := pkgref.New(ask.Package.Ecosystem, ask.Package.Name, ask.Package.Version)
	if err == nil && (ref != ask.Package || ref.Version == "") {
		err = fault.Invalid("%q is not a release in canonical form, so nobody can be asked about it", valid(ask.Package.String(), maxShort))
	}
	return err
}

func cleanFiles(files []File) ([]File, error) {
	seen := map[string]bool{}
	cleaned := make([]File, 0, len(files))
	for _, f := range files {
		switch {
		case f.Name == "" || len(f.Name) > maxShort || seen[f.Name]:
			return nil, fault.Invalid("%q is not a file name, or is listed twice", valid(f.Name, maxShort))
		case len(f.Digests) > maxDigests:
			return nil, fault.Invalid("the file %s has more than %d digests", valid(f.Name, maxShort), maxDigests)
		}
		seen[f.Name] = true
		for _, d := range f.Digests {
			algorithm, sum, ok := strings.Cut(d, ":")
			if !ok || algorithm == "" || sum == "" || len(d) > maxDigest || strings.ContainsAny(d, " \t\r\n") || !utf8.ValidString(d) {
				return nil, fault.Invalid("%q is not a digest of the file %s", valid(d, maxShort), valid(f.Name, maxShort))
			}
		}
		f.Name, f.Kind, f.Published = valid(f.Name, maxShort), valid(f.Kind, maxShort), plain(f.Published)
		cleaned = append(cleaned, f)
	}
	return cleaned, nil
}

// cleanEvidence bounds each text and then the whole, by shortening all lists.
func cleanEvidence(e evidence.Evidence) evidence.Evidence {
	e = e.Apart()
	e.Published, e.FirstSeen = plain(e.Published), plain(e.FirstSeen)
	for _, s := range e.Texts() {
		*s = valid(*s, maxShort)
	}
	e.Summary = valid(e.Summary, maxShort)
	for most := maxList; ; most /= 2 {
		for _, l := range e.Lists() {
			*l = clipList(*l, most, maxShort)
		}
		if most == 0 || encodedSize(e) <= maxEvidence {
			return e
		}
	}
}

// mergeEvidence fills what was not known, and adds to the lists; changed tells
// whether anything came.
func mergeEvidence(known, more evidence.Evidence) (merged evidence.Evidence, changed bool) {
	merged = known.Apart()
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
		for _, item := range *lists[i] {
			if !slices.Contains(*l, item) {
				*l = append(slices.Clip(*l), item)
			}
		}
	}
	merged = cleanEvidence(merged)
	return merged, encoded(merged) != encoded(known)
}

// lacks tells that some list is shorter than it was: there is no room for more.
// What is known only ever grows, or asks in turn would change it for ever.
func lacks(e, was evidence.Evidence) bool {
	before := was.Lists()
	for i, l := range e.Lists() {
		if len(*l) < len(*before[i]) {
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

// valid bounds text to so many bytes of valid UTF-8.
func valid(s string, most int) string {
	return excerpt.Of(strings.ToValidUTF8(s, "\ufffd"), most)
}

func clipList(list []string, most, length int) []string {
	if len(list) == 0 || most == 0 {
		return nil
	}
	clipped := make([]string, 0, min(len(list), most))
	for _, s := range list[:min(len(list), most)] {
		clipped = append(clipped, valid(s, length))
	}
	return clipped
}

// plain is a time as the log gives it back.
func plain(t time.Time) time.Time { return t.UTC().Round(0) }
