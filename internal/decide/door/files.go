package door

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// FileAsk is what every question about a file tells of it.
type FileAsk struct {
	Sandbox string     `json:"sandbox"`
	Package pkgref.Ref `json:"package"` // with version; of metadata that a query names without
	File    File       `json:"file"`    // whose Digest is the upstream's or a witness's
	// Release is the one file of the release that metadata describes, as far as it is
	// known without its bytes: what the metadata requires counts as that file does. nil:
	// nothing is known of it, and it admits nothing.
	Release   *File  `json:"release,omitempty"`
	Upstream  string `json:"upstream,omitempty"`  // the index's URL
	Toolchain bool   `json:"toolchain,omitempty"` // see policy.Subject
	SourceURL string `json:"source_url"`
	// Digests are all that are known, once the bytes are here: the upstream's
	// and our own.
	Digests []string `json:"digests,omitempty"`
	// Bundled are other packages inside the file, and Findings fixed sentences
	// about it; both are recorded with `served`.
	Bundled  []string `json:"bundled,omitempty"` // "name 1.0.0"
	Findings []string `json:"findings,omitempty"`
	// Contents is the digest of what the file is once it is unpacked; recorded with
	// `served`. "" is not known.
	Contents string `json:"contents,omitempty"`
}

// Bytes are those of a file, verified and in the cache.
type Bytes struct {
	SHA256 string `json:"sha256"` // hex
	Size   int64  `json:"size"`
	// Paths are those of the files inside, as far as they are known: for who answers,
	// and to compare with the next version of the package.
	Paths []string `json:"paths,omitempty"`
}

// JudgeAsk is Judge's question.
type JudgeAsk struct {
	FileAsk
	// MayWalk tells that the gateway would read what may lead to the release (Reach): a
	// refusal that this could lift is then no record yet, and has Unreached.
	MayWalk bool `json:"may_walk,omitempty"`
	// Evidence is what the gateway knows about the release, and Paths are those of the
	// files inside, for who is shown what a plan brings.
	Evidence *evidence.Evidence `json:"evidence,omitempty"`
	Paths    []string           `json:"paths,omitempty"`
}

// OutlineAsk is Outline's question.
type OutlineAsk struct {
	FileAsk
	MayWalk bool `json:"may_walk,omitempty"` // as JudgeAsk's
}

// PreviewAsk is Preview's question.
type PreviewAsk struct {
	FileAsk
	Evidence *evidence.Evidence `json:"evidence,omitempty"` // for who answers
}

// WalkAsk is Walk's question.
type WalkAsk struct{ FileAsk }

// AwaitAsk is Await's question.
type AwaitAsk struct {
	FileAsk
	Bytes
	Evidence *evidence.Evidence `json:"evidence,omitempty"` // for who answers
}

// ServeAsk is Serve's question.
type ServeAsk struct {
	FileAsk
	Bytes
	// Part is what of the file the answer has, if that is not all of it: a range, or
	// nothing because the client has it. It is recorded with `served`.
	Part string `json:"part,omitempty"`
	// Kept tells that the gateway's cache had the bytes when they were asked for.
	// It decides nothing, and is counted.
	Kept bool `json:"kept,omitempty"`
}

// Facts are what policy weighs of a file, before its bytes are here.
func (f File) Facts() policy.FileFacts {
	facts := policy.FileFacts{
		File: f.Name, Version: f.Version, Kind: f.Kind, Digest: f.Digest,
		Published: f.Published, FirstSeen: f.FirstSeen, Scripts: f.Scripts, PartOf: f.PartOf,
	}
	if f.Digest != "" {
		facts.Digests = []string{f.Digest}
	}
	return facts
}

// Facts are those of the ask's file, with all digests that came with it.
func (ask FileAsk) Facts() policy.FileFacts {
	facts := ask.File.Facts()
	for _, d := range ask.Digests {
		if !slices.Contains(facts.Digests, d) {
			facts.Digests = append(facts.Digests, d)
		}
	}
	return facts
}

// Of are the ask's facts once these bytes are here: no more digests will come.
func (b Bytes) Of(ask FileAsk) policy.FileFacts {
	facts := ask.Facts()
	if own := "sha256:" + b.SHA256; !slices.Contains(facts.Digests, own) {
		facts.Digests = append(facts.Digests, own)
	}
	facts.Complete = true
	return facts
}
