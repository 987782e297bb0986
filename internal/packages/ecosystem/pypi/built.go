package pypi

import (
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// builtTags are the end of the name of what is built of a source distribution. Its tags are
// not known before it is built, so they are the widest: whoever asks runs the Python that
// it is built with. By its build tag it can't be taken for a file of the publisher's.
const builtTags = "-0cofferdam-py3-none-any.whl"

// plainVersion are versions that a wheel's name and a URL have as they are.
var plainVersion = regexp.MustCompile(`^[0-9][0-9A-Za-z.]*$`) // a constant

// Built implements ecosystem.Builder.
func (Protocol) Built(source ecosystem.File) (ecosystem.File, bool) {
	folder, okPath := strings.CutSuffix(source.Path, "/"+source.Name)
	base, okURL := strings.CutSuffix(source.URL, "/"+source.Name)
	cut := strings.LastIndexByte(source.Name, '-')
	if source.Kind != policy.KindSdist || !okPath || !okURL || cut <= 0 || !plainVersion.MatchString(source.Version) {
		return ecosystem.File{}, false
	}
	name := strings.ReplaceAll(source.Name[:cut], "-", "_") + "-" + source.Version + builtTags
	return ecosystem.File{
		Name: name, Version: source.Version, Kind: policy.KindBuilt, Digest: source.Digest,
		URL: base + "/" + name, Path: folder + "/" + name,
		Published: source.Published, FirstSeen: source.FirstSeen, Yanked: source.Yanked, Requires: source.Requires,
	}, true
}

// Everywhere implements ecosystem.Builder: a wheel for any platform and any Python 3.
func (Protocol) Everywhere(f ecosystem.File) bool {
	stem, wheel := strings.CutSuffix(f.Name, ".whl")
	parts := strings.Split(stem, "-")
	if !wheel || f.Kind != policy.KindWheel || len(parts) < 5 {
		return false
	}
	tags := parts[len(parts)-3:]
	return tags[1] == "none" && tags[2] == "any" && strings.Contains("."+tags[0]+".", ".py3.")
}

// Bounds of what is built: it comes out of a sandbox that ran its publisher's code.
const (
	maxBuiltFiles = 20_000
	maxBuiltBytes = 1 << 30 // unpacked
	maxBuiltRatio = 200     // of that and the archive
)

// inspectBuilt looks into a wheel that was built of a source distribution: all that is
// asked of a published one, and nothing in it but files and folders, none of which takes
// its owner's rights along.
func inspectBuilt(file ecosystem.File, content ecosystem.Content) (ecosystem.Inspection, error) {
	z, err := archive.Zip(content, content.Size(), archive.Limits{Members: maxBuiltFiles, Unpacked: maxBuiltBytes, Ratio: maxBuiltRatio})
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	for _, m := range z.Members() {
		switch {
		case !m.Mode.IsRegular() && !m.Mode.IsDir():
			return ecosystem.Inspection{}, fault.Invalid("the wheel that was built has something else than files and folders in it")
		case m.Raised && !m.Mode.IsDir():
			return ecosystem.Inspection{}, fault.Invalid("the wheel that was built has a file that runs with its owner's rights (setuid or setgid)")
		}
	}
	return inspectWheel(file, content)
}
