package pypi

import (
	"io"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// perFile is about what one file takes on a page, for the first allocation.
const perFile = 512

// ContentType is the form's media type.
func (Protocol) ContentType(form ecosystem.Form) string {
	switch form {
	case formHTML:
		return typeHTML
	case formText:
		return typeText + "; charset=utf-8"
	}
	return typeJSON
}

// Render writes the page. Order and members depend only on the arguments, so
// equal arguments give equal bytes.
func (Protocol) Render(w io.Writer, ix *ecosystem.Index, _ io.ReaderAt, view ecosystem.View) error {
	switch {
	case len(view.Verdicts) != len(ix.Files):
		return fault.Invalid("%d verdicts for the %d files of %s", len(view.Verdicts), len(ix.Files), ix.Project)
	case view.Release != "":
		return fault.New(fault.ErrNotFound, "this protocol has no page for one release")
	}
	var err error
	switch view.Form {
	case formJSON:
		_, err = w.Write(renderJSON(ix, view.Verdicts))
	case formHTML, formText:
		_, err = w.Write(renderHTML(ix, view.Verdicts))
	default:
		err = fault.Invalid("no form %q of a project's page", string(view.Form))
	}
	return err
}

// mark is how a file is shown: withheld ones get the reason as their yank,
// unless nothing at all is allowed (see the package comment).
type mark struct {
	yanked   bool
	reason   string
	metadata bool // clients may ask for the sidecar
	outline  bool // of which they get a part, with another digest
}

func listMarks(ix *ecosystem.Index, verdicts []ecosystem.Verdict) []mark {
	some := false
	for _, v := range verdicts {
		some = some || v.Allowed
	}
	out := make([]mark, len(verdicts))
	for i, v := range verdicts {
		f := ix.Files[i]
		switch {
		case v.Allowed:
			out[i] = mark{yanked: f.Yanked, metadata: f.Kind == policy.KindWheel}
			if f.Yanked {
				out[i].reason = "yanked by its publisher"
			}
		case some:
			out[i] = mark{yanked: true, reason: ecosystem.Line("Blocked by cofferdam: " + v.Reason)}
		case v.Outlined:
			out[i] = mark{metadata: f.Kind == policy.KindWheel, outline: true}
		}
	}
	return out
}

func renderJSON(ix *ecosystem.Index, verdicts []ecosystem.Verdict) []byte {
	b := make([]byte, 0, perFile*(len(ix.Files)+1))
	version := "1.1"
	for _, f := range ix.Files {
		if f.Size == 0 { // 1.1 demands every size
			version = "1.0"
			break
		}
	}
	b = append(b, `{"meta":{"api-version":"`+version+`"},"name":`...)
	b = appendQuoted(b, ix.Project)
	if ix.Status != "" {
		b = append(b, `,"project-status":{"status":`...)
		b = append(appendQuoted(b, ix.Status), '}')
	}
	if version == "1.1" {
		b = append(b, `,"versions":[`...)
		b = append(appendVersions(b, ix), ']')
	}
	b = append(b, `,"files":[`...)
	for i, m := range listMarks(ix, verdicts) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFile(b, ix.Files[i], m)
	}
	return append(b, `]}`...)
}

func appendVersions(b []byte, ix *ecosystem.Index) []byte {
	seen := make(map[string]bool, len(ix.Files))
	for _, f := range ix.Files {
		if seen[f.Version] {
			continue
		}
		if len(seen) > 0 {
			b = append(b, ',')
		}
		seen[f.Version] = true
		b = appendQuoted(b, f.Version)
	}
	return b
}

func appendFile(b []byte, f ecosystem.File, m mark) []byte {
	b = append(b, `{"filename":`...)
	b = appendQuoted(b, f.Name)
	b = append(b, `,"url":`...)
	b = appendQuoted(b, f.ClientURL())
	b = append(b, `,"hashes":{`...)
	if f.Kind != policy.KindBuilt { // the digest is its source's
		b = append(b, `"sha256":`...)
		b = appendQuoted(b, hexDigest(f.Digest))
	}
	b = append(b, '}')
	if f.Size > 0 {
		b = append(b, `,"size":`...)
		b = strconv.AppendInt(b, f.Size, 10)
	}
	if f.Requires != "" {
		b = append(b, `,"requires-python":`...)
		b = appendQuoted(b, f.Requires)
	}
	if !f.Published.IsZero() {
		b = append(b, `,"upload-time":"`...)
		b = f.Published.UTC().AppendFormat(b, time.RFC3339Nano)
		b = append(b, '"')
	}
	if m.yanked {
		b = append(b, `,"yanked":`...)
		b = appendQuoted(b, m.reason)
	}
	if m.metadata {
		b = append(b, `,"core-metadata":`...)
		b = appendSidecar(b, m.digest(f))
		if m.outline { // pip before 23.2 knows this key alone, and takes only text for its value
			b = append(b, `,"dist-info-metadata":"true"`...)
		}
	}
	return append(b, '}')
}

// digest is that of a file's sidecar; "": clients are told of none.
func (m mark) digest(f ecosystem.File) string {
	if m.outline {
		return ""
	}
	return f.Sidecar
}

func appendSidecar(b []byte, digest string) []byte {
	if digest == "" {
		return append(b, "true"...)
	}
	b = append(b, `{"sha256":`...)
	return append(appendQuoted(b, hexDigest(digest)), '}')
}

// appendQuoted appends a JSON string. Its argument was checked to be UTF-8.
func appendQuoted(b []byte, s string) []byte {
	q, err := jsontext.AppendQuote(b, s)
	if err != nil { // not reached; an empty string breaks nothing
		return append(b, `""`...)
	}
	return q
}

func hexDigest(digest string) string { return digest[len("sha256:"):] }
