package admission

import (
	"regexp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// fileQuestion is what the door's questions about a file have in common, and what some of
// them tell beside that.
type fileQuestion struct {
	door.FileAsk
	bytes    *door.Bytes // that it is about; nil: they may not be here yet
	mayWalk  bool        // see door.JudgeAsk
	paths    []string    // of the files inside, as far as they are known
	evidence *evidence.Evidence
}

// aboutBytes is a question about verified bytes.
func aboutBytes(ask door.FileAsk, bytes door.Bytes) fileQuestion {
	return fileQuestion{FileAsk: ask, bytes: &bytes, paths: bytes.Paths}
}

// fileFacts are what policy weighs of the file.
func (q fileQuestion) fileFacts() policy.FileFacts {
	if q.bytes == nil {
		return q.Facts()
	}
	return q.bytes.Of(q.FileAsk)
}

// sha256 is that of the bytes, hex; "" without them. size is theirs.
func (q fileQuestion) sha256() string {
	if q.bytes == nil {
		return ""
	}
	return q.bytes.SHA256
}

func (q fileQuestion) fileSize() int64 {
	if q.bytes == nil {
		return 0
	}
	return q.bytes.Size
}

// hexDigest is what Bytes.SHA256 must be.
var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`) // a constant

// maxDigests of one file.
const maxDigests = 16

// checkQuestion refuses a question that can't be meant.
func (q fileQuestion) checkQuestion() error {
	name := redact.Cut(q.File.Name, 80)
	switch {
	case q.Package.Version == "" && q.File.Kind != policy.KindMetadata || q.Package.Version != q.File.Version || !pkgref.IsCanonicalName(q.Package.Ecosystem, q.Package.Name):
		return fault.Invalid("a file is asked about with its release, not with %q and %q", redact.Cut(q.Package.String(), 200), redact.Cut(q.File.Version, 80))
	case q.File.Name == "" || len(q.File.Name) > 512:
		return fault.Invalid("a file of %s has the name %q, which no file can have", q.Package, name)
	case q.Release != nil && (q.File.Kind != policy.KindMetadata || q.Release.Kind == policy.KindMetadata || q.Release.Version != q.Package.Version):
		return fault.Invalid("the file that %s describes is not one of %s", name, q.Package)
	case len(q.Digests) > maxDigests || slices.ContainsFunc(q.Digests, func(d string) bool { return d == "" || len(d) > 256 }):
		return fault.Invalid("%s has %d digests, or an invalid one", name, len(q.Digests))
	case q.bytes == nil:
		return nil
	case q.File.Kind == policy.KindMetadata:
		return fault.Invalid("%s is metadata, which is not served as a file", name)
	case !hexDigest.MatchString(q.bytes.SHA256):
		return fault.Invalid("%s can't be served without its sha256", name)
	case q.File.Kind.Made(): // its digest is its source's
	case q.File.Digest != "" && q.File.Digest != "sha256:"+q.bytes.SHA256 && isSHA256(q.File.Digest):
		return fault.New(fault.ErrForbidden, "%s is not the file that the index lists: its sha256 is another", name)
	}
	return nil
}

func isSHA256(digest string) bool { return len(digest) == 71 && digest[:7] == "sha256:" }
